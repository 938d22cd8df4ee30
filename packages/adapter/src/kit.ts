/** Everything that the author of an adapter needs, in one import. */

export { withoutToolLines } from "./draft/tool-line.ts";
export * from "./memory/sent.ts";
export * from "./platform/buttons.ts";
export * from "./platform/json.ts";
export * from "./platform/network.ts";
export * from "./platform/platform.ts";
export type {
	Activity,
	HealthReport,
	InboundChoice,
	InboundMessage,
	MessageFailure,
	PlatformFault,
	Question,
	Target,
	WireAttachment,
} from "./port.ts";
export * from "./serve/confirmation-queue.ts";
export * from "./serve/listen.ts";
export { serve } from "./serve/serve.ts";
