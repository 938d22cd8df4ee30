/** The shapes of what a session works on: continuing, phases and the execution log. */

import type * as wire from "@nexus-stream/protocol";
import { z } from "zod";
import { component, count, type Fields, limit, offset, time } from "./schema.ts";

export const RunContinued = component(
	"RunContinued",
	z.object({ run_id: z.string(), continues: z.string() } satisfies Fields<wire.RunContinuedJson>),
);

export const RunRetried = component(
	"RunRetried",
	z.object({ run_id: z.string(), retries: z.string() } satisfies Fields<wire.RunRetriedJson>),
);

const phaseName = z.string().min(1).max(64);
export const PhaseRequest = component(
	"PhaseRequest",
	z.object({
		name: phaseName,
		because: z.string().max(1000).exactOptional(),
	} satisfies Fields<wire.PhaseRequest>),
);
export const SessionPhase = component(
	"SessionPhase",
	z.object({
		session: z.string(),
		phase: z
			.object({
				name: z.string(),
				since: time,
				from: z.string().exactOptional().describe("The phase before."),
				because: z.string().exactOptional(),
				turns: count.describe("Turns that settled in it."),
				completions: count.describe("Times that an agent completed its work in it."),
			} satisfies Fields<wire.PhaseJson>)
			.nullable(),
		known: z.array(z.string()).exactOptional().describe("The names that the engine knows."),
	} satisfies Fields<wire.SessionPhaseJson>),
);

const trustHistory = z
	.boolean()
	.describe(
		"Everything in the session's history may act with the rights of the sender of a run. Holds for its next runs.",
	);
export const SessionSettingsRequest = component(
	"SessionSettingsRequest",
	z.strictObject({ trust_history: trustHistory } satisfies Fields<wire.SessionSettingsRequest>),
);
export const SessionSettings = component(
	"SessionSettings",
	z.object({ session: z.string(), trust_history: trustHistory } satisfies Fields<wire.SessionSettingsJson>),
);

export const logQuery = z.object({
	run: z.string().min(1).max(128).optional().describe("Only this run's entries."),
	before: offset.optional().describe("An entry's id: only older ones."),
	limit,
});
export const SessionLog = component(
	"SessionLog",
	z.object({
		entries: z
			.array(
				z.object({
					id: count,
					run_id: z.string().exactOptional(),
					at: time,
					kind: z.string(),
					agent: z.string().exactOptional(),
					text: z.string(),
					data: z.record(z.string(), z.unknown()).exactOptional(),
				} satisfies Fields<wire.LogEntryJson>),
			)
			.describe("Oldest first."),
	} satisfies Fields<wire.SessionLogJson>),
);
