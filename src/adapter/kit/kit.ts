/** Everything that the author of an adapter needs, in one import. */
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
} from "../port.ts";
export * from "./buttons.ts";
export * from "./confirmation-queue.ts";
export * from "./json.ts";
export * from "./listen.ts";
export * from "./network.ts";
export * from "./platform.ts";
export * from "./sent.ts";
export { serve } from "./serve.ts";
export { withoutToolLines } from "./tool-line.ts";
