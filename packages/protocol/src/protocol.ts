/** The words of Nexus: pure, browser-safe, no imports from outside this folder. The door of this folder. */

export {
	ERROR_TABLE,
	type ErrorCode,
	exitCodeOf,
	grpcStatusOf,
	httpStatusOf,
	isErrorCode,
	NexusError,
	type Reason,
	type RefusalKind,
	Refused,
	reasonOf,
	reasonOfEnd,
	reasonOfFailure,
	toNexusError,
	wordsOf,
} from "./error.ts";
export {
	type CloseMode,
	kindRetention,
	LOG_KINDS,
	type LogKind,
	STREAM_ENDPOINTS,
	STREAM_PROCEDURES,
} from "./frames/close-mode.ts";
export {
	chunkDecoder,
	chunkEncoder,
	continuesText,
	decodeFrame,
	encodeFrame,
	type FrameType,
	frameTypeOf,
} from "./frames/codec.ts";
export { type ContentPart, contentText, type SignedReasoning } from "./frames/content.ts";
export { checksumOf, crc32 } from "./frames/crc.ts";
export {
	type Align,
	type BeginFrame,
	CHUNK_BYTES,
	type ChunkFrame,
	chunkBytesOf,
	type EndError,
	type EndFrame,
	type EndReason,
	type Frame,
	type Modality,
	type Usage,
	type UsageShare,
} from "./frames/frame.ts";
export { createToEvents, type ToEvents } from "./frames/mapping.ts";
export {
	decodeToolStatus,
	encodeToolStatus,
	isToolDone,
	type StreamEvent,
	shownJson,
	shownText,
	type ToolApprovalState,
	type ToolApprovalStatus,
	type ToolStatusEvent,
} from "./frames/stream-event.ts";
export {
	createVerifier,
	isDamage,
	type Verifier,
	VIOLATION_RULE,
	type Violation,
	type ViolationKind,
} from "./frames/verify.ts";
export {
	idsAfter,
	isIdOf,
	isMemoryBank,
	isSessionLabel,
	messageIdOf,
	newEventId,
	newId,
	newRunId,
	type Random,
	runIdOf,
	streamNumberOf,
	timeOfId,
	traceIdIn,
	traceIdOf,
} from "./ids.ts";
export { createFold, encodeInjected, type Fold, injectedIn } from "./view/fold.ts";
export {
	isShown,
	type MessageView,
	type PartView,
	type ReasoningView,
	type RunView,
	shownOf,
	type ToolView,
	type ViewState,
} from "./view/view.ts";
