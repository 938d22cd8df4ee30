/** Adapters render answers on platforms we do not own. The door of this folder. */
export * from "./conformance/conformance.ts";
export * from "./info.ts";
export { cut, type MarkdownCut, type MarkdownState, stateAt } from "./markdown/split.ts";
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
