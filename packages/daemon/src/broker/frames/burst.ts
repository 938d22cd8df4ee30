/** What an engine yields at once: one event, several, or one that is so long that it is taken in portions. */

import { setImmediate } from "node:timers/promises";
import type { LogWriter } from "../../bus/bus.ts";
import type { EngineEvent, EngineYield } from "../../engine/engine.ts";

/** A longer delta is taken in portions. */
export const DELTA_CHARS_MAX = 64 * 1024;

export type Delta = Extract<EngineEvent, { type: "text" | "reasoning" }>;

export const isLong = (event: EngineEvent): event is Delta =>
	(event?.type === "text" || event?.type === "reasoning") &&
	typeof event.delta === "string" &&
	event.delta.length > DELTA_CHARS_MAX;

export type Burst = readonly EngineEvent[];

export const isBurst = (said: EngineYield): said is Burst => Array.isArray(said);

export const pause = (writer: LogWriter): Promise<unknown> => (writer.crowded ? writer.room() : setImmediate());
