/** The words of Nexus: pure, browser-safe, no imports from outside this folder. The door of this folder. */
export type * from "./api.ts";
export type * from "./api-channels.ts";
export type * from "./api-mcp.ts";
export type * from "./api-memory.ts";
export * from "./chunk-size.ts";
export * from "./close-mode.ts";
export * from "./codec.ts";
export * from "./content.ts";
export * from "./crc.ts";
export * from "./error.ts";
export * from "./fold.ts";
export * from "./frame.ts";
export * from "./ids.ts";
export * from "./mapping.ts";
export * from "./stream-event.ts";
export * from "./verify.ts";
export * from "./view.ts";
