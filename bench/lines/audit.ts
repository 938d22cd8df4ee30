/** How fast a daemon gives away its audit log: over HTTP and gRPC, as NDJSON, as CSV and compressed. */

import { mkdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import {
	AuditExportFormat,
	ExportAuditEventsRequestSchema,
} from "../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import { createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import { serviceRows } from "../../packages/daemon/src/runtime/data/tables.ts";
import type { AuditEntry } from "../../packages/daemon/src/services/audit/port.ts";
import { createAudit } from "../../packages/daemon/src/services/audit/record.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { systemClock } from "../../packages/protocol/src/clock.ts";
import { quiet } from "../../test/quiet.ts";
import type { Figure } from "../figure.ts";
import { connectGrpc, fieldOf, readGrpc } from "../grpc.ts";
import { type Server, startNexus, withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

const EVENTS = 200_000;
const EVENTS_PER_COMMIT = 64;
const ROUNDS = 5;
const GOAL_MB = 50;
const PROCEDURE = "nexus.runtime.v1.RuntimeAuditService/ExportAuditEvents";
const CHUNK = 3;

/** As the daemon tells of a message: accepted, started, settled. */
function entryOf(n: number): AuditEntry {
	const run_id = `run_01KA4XJ5T5M1V6E4WX2Q${String(n).padStart(6, "0")}`;
	const session = `session-${n % 1000}`;
	const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
	const caller = "telegram/main/1234567890";
	const event_id = `evt_01KA4XJ5T5M1V6E4WX2Q${String(n).padStart(6, "0")}`;
	if (n % 3 === 0)
		return {
			domain: "messages",
			operation: "accepted",
			traceId,
			caller,
			payload: { event_id, session, state: "started", run_id },
		};
	if (n % 3 === 1)
		return {
			domain: "runs",
			operation: "started",
			traceId,
			caller,
			payload: { run_id, session, engine: "pi", messages: 1 },
		};
	const usage = { input_tokens: 812, output_tokens: 245 };
	return {
		domain: "runs",
		operation: "settled",
		traceId,
		payload: { run_id, session, status: "completed", reason: "done", ms: 4213, tools: 0, ...usage },
	};
}

/** Each event is a separate row, as if each had come alone: the most that reading can cost. */
export async function fillAudit(folder: string, events: number): Promise<void> {
	mkdirSync(join(folder, "data"), { recursive: true, mode: 0o700 });
	const file = openSqlite(join(folder, "data", "nexus.db"), "process");
	sqliteLedger(file);
	serviceRows(file);
	const bus = createBus({ ...quiet, storage: sqliteStorage(file) });
	const tell = createAudit(systemClock);
	try {
		for (let n = 0; n < events; ) {
			const entries = Array.from({ length: Math.min(EVENTS_PER_COMMIT, events - n) }, () => tell(entryOf(n++)));
			await bus.write(entries);
		}
	} finally {
		await bus.close();
		file.close();
	}
}

/** Bytes that arrived. */
type Export = (server: Server) => Promise<number>;

const overHttp =
	(format: string): Export =>
	({ port, token }) =>
		new Promise((resolve, reject) => {
			const path = `/v1/audit/export?format=${format}`;
			const headers = { authorization: `Bearer ${token}` };
			const sent = request({ port, host: "127.0.0.1", path, headers, agent: false }, (response) => {
				let bytes = 0;
				response.on("data", (part: Buffer) => {
					bytes += part.length;
				});
				response.on("error", reject);
				response.on("end", () => {
					if (response.statusCode === 200) resolve(bytes);
					else reject(new Error(`GET ${path}: ${response.statusCode}`));
				});
			});
			sent.on("error", reject);
			sent.end();
		});

const overGrpc =
	(gzip: boolean): Export =>
	async ({ grpcPort, token }) => {
		const session = await connectGrpc(grpcPort);
		try {
			let bytes = 0;
			const request = { format: AuditExportFormat.NDJSON, gzip };
			const procedure = { path: PROCEDURE, schema: ExportAuditEventsRequestSchema, request, token };
			await readGrpc(session, procedure, (message) => {
				bytes += fieldOf(message, CHUNK)?.length ?? 0;
			}).ended;
			return bytes;
		} finally {
			session.close();
		}
	};

const EXPORTS: Readonly<Record<string, Export>> = {
	"HTTP, NDJSON": overHttp("ndjson"),
	"gRPC, NDJSON": overGrpc(false),
	"HTTP, CSV": overHttp("csv"),
	"gRPC, NDJSON, gzip": overGrpc(true),
};

const seconds = async (work: () => Promise<unknown>): Promise<number> => {
	const started = performance.now();
	await work();
	return (performance.now() - started) / 1000;
};

export function audit(): Promise<Figure[]> {
	return withFolder(async (folder) => {
		await fillAudit(folder, EVENTS);
		const server = await startNexus(folder);
		try {
			// The warm-up tells how much there is: what is compressed counts as what it was.
			const megabytes = (await overHttp("ndjson")(server)) / 1e6;
			const figures: Figure[] = [];
			const times = new Map(Object.keys(EXPORTS).map((name): [string, number[]] => [name, []]));
			for (let turn = 0; turn <= ROUNDS; turn++) {
				for (const [name, work] of Object.entries(EXPORTS)) {
					const took = await seconds(() => work(server));
					if (turn > 0) times.get(name)?.push(took);
				}
			}
			for (const [name, took] of times) {
				const isGoal = name.endsWith("NDJSON");
				figures.push({
					name: `audit export of ${EVENTS.toLocaleString("en-US")} events, ${name}`,
					unit: "MB/s",
					value: megabytes / median(took),
					goal: isGoal ? { of: "value", atLeast: GOAL_MB } : undefined,
				});
			}
			return figures;
		} finally {
			await server.stop();
		}
	});
}
