/** Markdown as plain text, which notes and private messages are, counted in bytes. */

import { lengthOf } from "@nexus-stream/adapter/markdown/length";
import { renderPlain } from "@nexus-stream/adapter/markdown/plain";

export const render = (markdown: string): string => renderPlain(markdown);

export const measure = (rendered: string): number => lengthOf(rendered, "utf8");
