/** What everybody who reads an answer's markdown has to know about it: the page and the adapters. */

export * from "./hostile.ts";
