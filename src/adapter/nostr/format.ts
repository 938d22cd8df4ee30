/** Markdown as plain text, which notes and private messages are, counted in bytes. */

import { lengthOf } from "../kit/length.ts";
import { renderPlain } from "../kit/plain.ts";

export const render = (markdown: string): string => renderPlain(markdown);

export const measure = (rendered: string): number => lengthOf(rendered, "utf8");
