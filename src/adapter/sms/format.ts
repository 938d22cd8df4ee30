/** Markdown as plain text, counted as text messages are. */

import { lengthOf } from "../kit/length.ts";
import { renderPlain } from "../kit/plain.ts";

export const render = (markdown: string): string => renderPlain(markdown);

export const measure = (rendered: string): number => lengthOf(rendered, "sms");
