/** Adapters render answers on platforms we do not own. The door of this folder. */
export * from "./bundled.ts";
export * from "./channels.ts";
export * from "./chats.ts";
export * from "./conformance/conformance.ts";
export * from "./info.ts";
export {
	createLineReader,
	createLineWriter,
	type LineFault,
	type LineWriter,
} from "./kit/lines.ts";
export { openNotes } from "./kit/notes.ts";
export { cut, type MarkdownCut, type MarkdownState, stateAt } from "./kit/split.ts";
export { forgetOrphan, orphanedStates, readState, writeState } from "./kit/state.ts";
export * from "./nonce.ts";
export * from "./port.ts";
export { buttonsFault, questionFault } from "./question.ts";
export * from "./shapes.ts";
