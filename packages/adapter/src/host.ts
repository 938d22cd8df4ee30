/** The door for hosts of adapters: cutting markdown, nonces, questions, conformance. Lines, shapes and memory are imported by file. */
export { runConformance } from "./conformance/conformance.ts";
export { type MarkdownState, START as MARKDOWN_START } from "./markdown/markdown-state.ts";
export { FenceWatch, isInFence, stateAfter, stateAt } from "./markdown/outline.ts";
export { cut, type MarkdownCut } from "./markdown/split.ts";
export { nonceOf, pieceNonce, pieceOf } from "./nonce.ts";
export { buttonsFault, questionFault } from "./question.ts";
