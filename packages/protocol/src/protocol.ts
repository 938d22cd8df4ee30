/** The words of Nexus: pure, browser-safe, no imports from outside this folder. The door of this folder. */
export * from "./error.ts";
export * from "./frames/chunk-size.ts";
export * from "./frames/close-mode.ts";
export * from "./frames/codec.ts";
export * from "./frames/content.ts";
export * from "./frames/crc.ts";
export * from "./frames/frame.ts";
export * from "./frames/mapping.ts";
export * from "./frames/shown.ts";
export * from "./frames/stream-event.ts";
export * from "./frames/verify.ts";
export * from "./ids.ts";
export type * from "./reason.ts";
export * from "./view/fold.ts";
export * from "./view/injected.ts";
export * from "./view/view.ts";
