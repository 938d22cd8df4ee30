/** A look at a provider: whether it answers and which models it has. Cheap, bounded in time, and without anything that a user wrote. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { OpenProvider } from "./http-provider.ts";
import type { ConnectorTest } from "./port.ts";

export type Looked = { ok: true; models: string[] | undefined } | { ok: false; error: NexusError };

const LOOK_MS_MAX = 10_000;

/** Never rejects. */
export async function lookAt(open: () => Promise<OpenProvider>, signal: AbortSignal): Promise<Looked> {
	const late = AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS_MAX)]);
	try {
		return { ok: true, models: await (await open()).models(late) };
	} catch (cause) {
		return { ok: false, error: lateOr(cause, late) };
	}
}

/** The limit of a look says it better than what it cut off. */
function lateOr(cause: unknown, signal: AbortSignal): NexusError {
	if ((signal.reason as Error | undefined)?.name !== "TimeoutError") return toNexusError(cause, "engine_failed");
	const message = `it did not answer within ${LOOK_MS_MAX / 1000} seconds`;
	return new NexusError("timeout", message, { reason: "AI_PROVIDER_TIMEOUT", cause });
}

export function testOf(looked: Looked): ConnectorTest {
	if (!looked.ok) {
		const { reason, message } = looked.error;
		return { ok: false, message, models: [], reason };
	}
	const { models } = looked;
	if (models === undefined) return { ok: true, message: "it answers, but has no list of models", models: [] };
	const count = `${models.length} ${models.length === 1 ? "model" : "models"}`;
	return { ok: true, message: `it answers and has ${count}`, models };
}
