/** What collects an answer's text until a message of it is ready: blocks while it is written, or the whole at its end. */

import type { SourceEvent } from "../source.ts";
import type { DeliveryBlock } from "./block-step.ts";

export interface BlockMachine {
	take(event: SourceEvent, now: number): void;
	/** The time has come, or passed. */
	tick(now: number): void;
	/** When `tick` is needed. */
	readonly wakeAt: number | undefined;
	/** The next message that is ready; each once. */
	ready(): DeliveryBlock | undefined;
	readonly humanDelayMs: { min: number; max: number } | undefined;
}
