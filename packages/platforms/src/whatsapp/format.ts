/** Markdown in WhatsApp's own marks. It makes links of addresses by itself. */

import { renderMarks, writtenOut } from "@nexus-stream/adapter/markdown/marks";

export const measure = (rendered: string): number => rendered.length;

export const render = (markdown: string): string =>
	renderMarks(markdown, { escape: (text) => text, link: writtenOut, bullet: "- " });
