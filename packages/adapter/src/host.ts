/** Adapters render answers on platforms we do not own. The door of this folder. */
export * from "./conformance/conformance.ts";
export * from "./info.ts";
export { type MarkdownState, START as MARKDOWN_START } from "./markdown/markdown-state.ts";
export { FenceWatch, isInFence, stateAfter, stateAt } from "./markdown/outline.ts";
export { cut, type MarkdownCut } from "./markdown/split.ts";
export { openNotes } from "./memory/notes.ts";
export { forgetOrphan, orphanedStates, readState, writeState } from "./memory/state.ts";
export * from "./nonce.ts";
export * from "./port.ts";
export { buttonsFault, questionFault } from "./question.ts";
export {
	createLineReader,
	createLineWriter,
	type LineFault,
	type LineWriter,
} from "./serve/lines.ts";
export * from "./shapes.ts";
