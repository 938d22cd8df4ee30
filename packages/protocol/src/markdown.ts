/** Limits for the Markdown of answers, shared by the page and the adapters. */

export * from "./hostile.ts";
