/** The delivery side of the daemon in this process: a store, runs that are written to it, and real adapter processes. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Bus, createBus, sqliteStorage } from "../packages/daemon/src/bus/bus.ts";
import { sqliteLedger } from "../packages/daemon/src/ledger/ledger.ts";
import { createOutbound, type Outbound } from "../packages/daemon/src/nex/nex.ts";
import { openSqlite } from "../packages/daemon/src/std/sqlite/sqlite.ts";
import { silentLog } from "../packages/protocol/src/log.ts";
import {
	checksumOf,
	chunkEncoder,
	crc32,
	encodeFrame,
	messageIdOf,
	newRunId,
} from "../packages/protocol/src/protocol.ts";
import { quiet } from "../test/quiet.ts";
import type { Arrival } from "./adapter.ts";
import { withFolder } from "./processes.ts";

const ADAPTER = fileURLToPath(new URL("./adapter.ts", import.meta.url));

export const adapterCommand = (...settings: readonly string[]): string[] => [
	process.execPath,
	"--conditions=nexus-source",
	ADAPTER,
	...settings,
];

export interface OutboundSide {
	folder: string;
	bus: Bus;
	outbound: Outbound;
	/** Delivers a run to a new chat of a child, and tells what arrived there. */
	deliver(channel: string, runId: string): Promise<{ arrived: Promise<Arrival>; settled: Promise<void> }>;
}

/** By name: the settings of each child. */
export function withOutbound<T>(
	children: (folder: string) => Readonly<Record<string, readonly string[]>>,
	work: (side: OutboundSide) => Promise<T>,
): Promise<T> {
	return withFolder(async (folder) => {
		const file = openSqlite(join(folder, "nexus.db"), "process");
		const bus = createBus({ ...quiet, storage: sqliteStorage(file) });
		const arrivals = new Map<string, PromiseWithResolvers<Arrival>>();
		const arrival = (delivery: string) => {
			const known = arrivals.get(delivery) ?? Promise.withResolvers<Arrival>();
			arrivals.set(delivery, known);
			return known;
		};
		const entries = Object.entries(children(folder)).map(([channel, settings]) => {
			const config = { command: adapterCommand(...settings), accounts: { main: { settings: {} } } };
			return [channel, config] as const;
		});
		const outbound = createOutbound({
			bus,
			ledger: sqliteLedger(file),
			dataDir: folder,
			log: silentLog,
			adapters: Object.fromEntries(entries),
			onCall: ({ delivery = "", detail = "" }) => arrival(delivery).resolve(JSON.parse(detail) as Arrival),
		});
		let chats = 0;
		const deliver: OutboundSide["deliver"] = async (channel, runId) => {
			const { id } = await outbound.deliver({
				runId,
				account: { channel, id: "main" },
				target: { to: String(++chats) },
			});
			return { arrived: arrival(id).promise, settled: outbound.settled(id).then(requireComplete) };
		};
		try {
			return await work({ folder, bus, outbound, deliver });
		} finally {
			await outbound.stop(0);
			await bus.close();
			file.close();
		}
	});
}

function requireComplete({ state, error }: { state: string; error?: string }): void {
	if (state !== "complete") throw new Error(`the delivery is ${state}: ${error}`);
}

export interface WrittenRun {
	runId: string;
	/** A promise when enough waits for the next commit, as a run's pump does it. */
	say(token: string): Promise<void> | undefined;
	end(): Promise<void>;
}

/** The frames of one text, written as the Broker writes them. */
export async function writeRun(bus: Bus): Promise<WrittenRun> {
	const runId = newRunId();
	const message_id = messageIdOf(runId, 1);
	const encode = chunkEncoder(message_id);
	const begin = encodeFrame({
		type: "stream.begin",
		message_id,
		run_id: runId,
		trace_id: "0",
		correlation_group: runId,
		session: "bench",
		modality: "text",
		content_type: "text/markdown",
		ts: Date.now(),
	});
	const writer = await bus.create({ log: runId, kind: "run" }, [begin]);
	let total_chunks = 0;
	let crc = 0;
	return {
		runId,
		say(token) {
			crc = crc32(token, crc);
			writer.append(encode(++total_chunks, token, Date.now()));
			return writer.crowded ? writer.flushed() : undefined;
		},
		end: () =>
			writer.seal([
				encodeFrame({
					type: "stream.end",
					message_id,
					total_chunks,
					checksum: checksumOf(crc),
					final: true,
					reason: "completed",
					usage: { input: -1, output: -1 },
					ts: Date.now(),
				}),
			]),
	};
}
