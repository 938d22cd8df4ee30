/** Many gRPC readers of one run that never read: what the process holds for each of them is one batch and a full connection (I6). */

import { expect, it, onTestFinished, vi } from "vitest";
import type { Batch, Bus, Cursor } from "../../../packages/daemon/src/bus/bus.ts";
import type { OutgoingResponse } from "../../../packages/daemon/src/edge/rpc/fast-stream/fast-stream.ts";
import { RpcStreams } from "../../../packages/daemon/src/edge/rpc/streams.ts";
import { manualClock } from "../../clock.ts";
import { waitFor } from "../rig.ts";
import { textLog, textRecord } from "./fake-methods.ts";
import { kitForTest } from "./kit.ts";
import { callHeaders, rawHttp2, readingRun, STREAM_SCENARIO } from "./raw.ts";

vi.mock("../../../packages/daemon/src/services/scenarios/rpc.ts", () => import("./fake-methods.ts"));

const CONNECTIONS = 5;
const STREAMS_EACH = 10;
const READERS = CONNECTIONS * STREAMS_EACH;
const TEXT = "x".repeat(4096);
/** A message with its head, at the most. */
const MESSAGE_BYTES_MAX = TEXT.length + 64;
/** A connection is full from here on. */
const FULL_BYTES = 16 * 1024;

/** The cursors that are opened from now on, each with how many records its last batch had. */
function countBatches(bus: Bus): readonly { cursor: Cursor; last: number }[] {
	const cursors: { cursor: Cursor; last: number }[] = [];
	const open = bus.cursor.bind(bus);
	bus.cursor = async (source, after) => {
		const cursor = await open(source, after);
		const counted = { cursor, last: 0 };
		const next = cursor.next.bind(cursor);
		const count = (batch: Batch | undefined) => {
			counted.last = batch?.count ?? counted.last;
			return batch;
		};
		cursor.next = () => {
			const batch = next();
			return batch instanceof Promise ? batch.then(count) : count(batch);
		};
		cursors.push(counted);
		return cursor;
	};
	return cursors;
}

/** Opens 50 calls whose clients take no byte; returns what the server has of each. */
function openStalled(target: string): { outgoing: readonly OutgoingResponse[] } {
	const outgoing: OutgoingResponse[] = [];
	const { watch } = RpcStreams.prototype;
	vi.spyOn(RpcStreams.prototype, "watch").mockImplementation(function (this: RpcStreams, one) {
		outgoing.push(one);
		return watch.call(this, one);
	});
	const headers = callHeaders(STREAM_SCENARIO, target);
	for (let n = 0; n < CONNECTIONS; n++) {
		const raw = rawHttp2(target, 0);
		onTestFinished(() => raw.destroy());
		for (let stream = 0; stream < STREAMS_EACH; stream++) raw.request(1 + 2 * stream, headers, readingRun("s1"));
	}
	return { outgoing };
}

it.each([
	{ what: "a log that grows", backlog: 0 },
	{ what: "a long backlog", backlog: 500 },
])(
	"I6: 50 gRPC readers of $what that never read hold one batch each, and no more when it grows",
	async ({ backlog }) => {
		const kit = await kitForTest({ clock: manualClock() });
		onTestFinished(() => void vi.restoreAllMocks());
		const { bus } = kit.rig;
		const log = await textLog(bus, "s1", "first");
		/** Commits each record separately; while it is new, it is a separate batch. */
		const say = async (records: number) => {
			for (let n = 0; n < records; n++) {
				log.append(textRecord(TEXT));
				await log.flushed();
			}
		};
		await say(backlog);
		const cursors = countBatches(bus);
		const { outgoing } = openStalled(kit.grpcTarget);
		await waitFor(() => cursors.length === READERS);
		await say(20);
		const held = () => outgoing.map(({ waitingBytes }) => waitingBytes);
		const read = () => cursors.map(({ cursor }) => cursor.offset);
		await waitFor(() => held().length === READERS && held().every((bytes) => bytes >= FULL_BYTES));
		const [heldBefore, readBefore] = [held(), read()];
		for (const bytes of heldBefore) expect(bytes).toBeLessThan(FULL_BYTES + MESSAGE_BYTES_MAX);
		// The last batch was read while the connection had room for one more message; the first record is a short one.
		for (const { cursor, last } of cursors) expect((cursor.offset - 1 - last) * TEXT.length).toBeLessThan(FULL_BYTES);
		await say(200);
		expect(held()).toEqual(heldBefore);
		expect(read()).toEqual(readBefore);
	},
);
