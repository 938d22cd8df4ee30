/** What an engine yields at once: one event, several, or one that is so long that it is taken in portions. */

import type { EngineEvent, EngineYield } from "../engine/engine.ts";

/** A longer delta is taken in portions. */
export const DELTA_CHARS_MAX = 64 * 1024;

export type Delta = Extract<EngineEvent, { type: "text" | "reasoning" }>;

export const isLong = (event: EngineEvent): event is Delta =>
	(event?.type === "text" || event?.type === "reasoning") &&
	typeof event.delta === "string" &&
	event.delta.length > DELTA_CHARS_MAX;

export type Burst = readonly EngineEvent[];

export const isBurst = (said: EngineYield): said is Burst => Array.isArray(said);
