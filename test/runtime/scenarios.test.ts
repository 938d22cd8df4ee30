/** Model calls against a whole daemon, offline: the connector `default` is the demonstration. */

import { expect, test } from "vitest";
import type { StreamScenarioResponse } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { ReasonCode } from "../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import { asking, clientOf, head } from "../ai-client.ts";
import { errorOf, readStream, statusOf } from "../edge/grpc/kit.ts";
import { daemonForTest } from "./daemon.ts";
import { freshFolder } from "./folder.ts";

const SHORT = "/demo tokens=60 rate=0";
const textOf = (events: readonly StreamScenarioResponse[]) => events.map(({ textDelta }) => textDelta).join("");

test("R4-59 to R4-63: text and speech stream offline, labelled as a demonstration, and outlive the daemon", async () => {
	const data = freshFolder();
	const first = await daemonForTest({ data });
	const client = clientOf(first);
	const text = await readStream(client.streamScenario({ scenario: asking(SHORT), idempotencyKey: "k" }));
	expect(text.error).toBeUndefined();
	expect(textOf(text.messages).length).toBeGreaterThan(10);
	expect(text.messages.at(-1)).toMatchObject({ done: true, reasonCode: ReasonCode.UNSPECIFIED, demo: true });
	const scenario = { head, spec: { case: "speechSynthesize" as const, value: { text: "good morning" } } };
	const speech = await readStream(client.streamScenario({ scenario }));
	expect(speech.error).toBeUndefined();
	expect(
		Buffer.concat(speech.messages.map(({ audioChunk }) => audioChunk))
			.subarray(0, 4)
			.toString(),
	).toBe("RIFF");
	expect(speech.messages.at(-1)).toMatchObject({ done: true, demo: true });
	await first.close();

	const again = clientOf(await daemonForTest({ data }));
	const { runId } = text.messages[0]!;
	const resumed = await readStream(again.streamScenario({ runId, after: text.messages[0]!.sequence }));
	expect(textOf([text.messages[0]!, ...resumed.messages])).toBe(textOf(text.messages));
	const repeated = await again.executeScenario({ scenario: asking(SHORT), idempotencyKey: "k" });
	expect(repeated).toMatchObject({ runId, text: textOf(text.messages) });
	const conflict = await errorOf(again.executeScenario({ scenario: asking("bye"), idempotencyKey: "k" }));
	expect(statusOf(conflict)).toEqual({ code: "InvalidArgument", reason: "REASON_CODE_IDEMPOTENCY_CONFLICT" });
});

test("Z6, Y3: a daemon that stops waits for a run, whose reader gets its end, then OK", async () => {
	const daemon = await daemonForTest({ stopDeadlineMs: 600_000 });
	const client = clientOf(daemon);
	let stopped: Promise<void> | undefined;
	const stream = client.streamScenario({ scenario: asking("/demo tokens=40 rate=100") });
	const { messages, error } = await readStream(stream, () => {
		stopped ??= daemon.close();
	});
	expect(stopped).toBeDefined();
	await stopped;
	expect(error).toBeUndefined();
	expect(messages.at(-1)).toMatchObject({ done: true, reasonCode: ReasonCode.UNSPECIFIED });
	expect(messages.length).toBeGreaterThan(1);
});
