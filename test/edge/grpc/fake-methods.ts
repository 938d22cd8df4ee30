/** One stream of every close mode over the real pump, with strings that a test pulls: for what the transport promises of all of them. */

import type { HandlerContext } from "@connectrpc/connect";
import type { Batch, Bus, LogWriter } from "../../../packages/daemon/src/bus/bus.ts";
import { feedStream, logStream, principalOf } from "../../../packages/daemon/src/edge/rpc/rpc.ts";

/** The rig passes its Bus to the methods. */
type FakeParts = { bus: Bus };

/** The test that calls the methods decides how they behave. */
export const strings = {
	/** Called by `recall`, which waits for it. */
	recall: (): void | Promise<void> => {},
	/** An export ends when this resolves. */
	eof: Promise.resolve(),
	/** How many subscriptions to memory there are. */
	subscribed: 0,
	tell: new Set<(bank: string) => void>(),
};

interface TextRequest {
	runId: string;
	after?: bigint;
}

const textEvents = ({ first, records }: Batch) =>
	records.map((record, at) => {
		const { text, done } = JSON.parse(record) as { text: string; done?: boolean };
		return { sequence: BigInt(first + at), textDelta: text, done: done === true };
	});

/** Mode A: a log that is sealed with its terminal. */
export const scenarioMethods = ({ bus }: FakeParts) => ({
	async *streamScenario({ runId, after = 0n }: TextRequest, context: HandlerContext) {
		principalOf(context);
		const cursor = await bus.cursor({ log: runId }, Number(after));
		yield* logStream(context, { cursor, closes: "A", messages: textEvents });
	},
});

/** Mode B: a log; and one that takes a cut for its end. */
export const jobMethods = ({ bus }: FakeParts) => ({
	async *subscribeScenarioJobEvents({ jobId }: { jobId: string }, context: HandlerContext) {
		if (jobId === "liar") {
			yield { sequence: 1n };
			await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
			return;
		}
		const cursor = await bus.cursor({ log: jobId }, 0);
		yield* logStream(context, {
			cursor,
			closes: "B",
			messages: ({ first, records }) => records.map((_, at) => ({ sequence: BigInt(first + at) })),
		});
	},
});

/** Mode C. */
export const auditMethods = () => ({
	async *exportAuditEvents() {
		yield { sequence: 1n, chunk: new Uint8Array([1]) };
		await strings.eof;
		yield { sequence: 2n, eof: true };
	},
});

/** Mode D, and a call that only reads. */
export const memoryMethods = () => ({
	async recall() {
		await strings.recall();
		return { items: [] };
	},
	subscribeMemoryEvents(_: object, context: HandlerContext) {
		return feedStream<string, { sequence: bigint; bank: string }>(context, {
			current: () => [],
			subscribe(listener) {
				strings.subscribed++;
				strings.tell.add(listener);
				return () => {
					strings.subscribed--;
					strings.tell.delete(listener);
				};
			},
			key: (bank) => bank,
			message: (bank, sequence) => ({ bank, sequence }),
		});
	},
});

export const textRecord = (text: string, done = false): string => JSON.stringify({ text, done: done || undefined });

export const textLog = (bus: Bus, log: string, ...texts: string[]): Promise<LogWriter> =>
	bus.create(
		{ log, kind: "scenario" },
		texts.map((text) => textRecord(text)),
	);

export const memoryLists = () => ({});
