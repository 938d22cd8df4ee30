/** The names that the author of an adapter needs first. Helpers are imported by file: `@nexus-stream/adapter/platform/network` and so on. */

export {
	type Account,
	definePlatform,
	type Platform,
	remembered,
	type Settings,
	type Tools,
} from "./platform/platform.ts";
export { PlatformError } from "./platform/platform-error.ts";
export type {
	CreatedMessage,
	DraftStyle,
	Pace,
	Press,
	SendOptions,
	Session,
	WebhookAnswer,
	WebhookRequest,
} from "./platform/session.ts";
export type { HealthReport, InboundMessage, Target, WireAttachment } from "./port.ts";
export { serve } from "./serve/serve.ts";
