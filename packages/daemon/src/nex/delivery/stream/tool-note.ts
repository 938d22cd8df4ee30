/** A line about a tool that runs, for channels that show a message only when it is whole. */

const NOTE_CHARS_MAX = 80;

/** Names come from tools: they may not open markdown of their own. */
export const toolNote = (what: string): string => `[${plainLine(what).slice(0, NOTE_CHARS_MAX).toWellFormed()}...]`;

const plainLine = (text: string): string => text.replace(/[`\s]+/g, " ").trim();
