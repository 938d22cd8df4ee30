/** One round of live streams against one server, and rounds of several servers in turns. */

import { join } from "node:path";
import type { Job, Outcome, Subscription } from "./client.ts";
import { textOf } from "./pace.ts";
import { cpuSeconds, load, type Server } from "./processes.ts";

export interface Shape {
	streams: number;
	readers: number;
	tokens: number;
	/** Per second and stream; 0 = as fast as it goes. */
	rate: number;
}

/** A server to measure, and how it is asked. */
export interface Side {
	server: Server;
	/** The path of a bare server. */
	path?: string;
	/** Calls of StreamScenario instead: one reader each. */
	grpc?: boolean;
	/** So many tokens at once from the engine. */
	burst?: number;
}

export interface Round extends Outcome {
	/** Per cent of the tokens that arrived. */
	delivered: number;
	/** Microseconds of processor time per event. */
	cpuUs: number;
}

const STAMPED_RATE_MIN = 1;
const MARGIN_MS = 60_000;
/** The daemon frames a stream with a begin and an end. */
const FRAMING_EVENTS = 2;

let roundsMade = 0;

/** With `held` the streams stay open after their last token until it has returned, and are measured up to their last token. */
export async function round(side: Side, folder: string, shape: Shape, held?: () => Promise<void>): Promise<Round> {
	const { server, path, burst, grpc } = side;
	const { streams, readers, tokens, rate } = shape;
	const id = `r${++roundsMade}`;
	const go = join(folder, `${id}.go`);
	const end = join(folder, `${id}.end`);
	const text = textOf({ tokens, rate, go, ...(held && { end }), ...(burst && { burst }) });
	const subscriptions = Array.from({ length: streams }, (_, index): Subscription => {
		if (grpc) return { scenario: text };
		const group = `${id}-${index}`;
		if (!path) return { message: { session: group, text }, path: "/v1/runs/{run}/stream", readers };
		return { path: `${path}?rhythm=${encodeURIComponent(text)}&readers=${readers}&group=${group}`, readers };
	});
	const isFramed = !path && !grpc;
	// A begin before the tokens; or a last token that is too small for a chunk, and waits for the end.
	const beside = isFramed ? 1 : grpc ? -1 : 0;
	const hold = held && { events: streams * readers * (tokens + beside), end };
	const timeoutMs = (rate > 0 ? (tokens / rate) * 1000 : 0) + MARGIN_MS;
	const { port, grpcPort, token } = server;
	const job: Job = {
		port: grpc ? grpcPort : port,
		token: token || undefined,
		subscriptions,
		latency: rate >= STAMPED_RATE_MIN,
		go,
		hold,
		timeoutMs,
	};
	let before = Number.NaN;
	let after: number | undefined;
	const outcome = await load(job, {
		going() {
			before = cpuSeconds(server.pid);
		},
		async held() {
			after = cpuSeconds(server.pid);
			await held?.();
		},
	});
	const framing = isFramed ? streams * readers * FRAMING_EVENTS : 0;
	const events = outcome.events - framing;
	const delivered = (events / (streams * readers * tokens)) * 100;
	if (delivered !== 100) console.error(`${path ?? "nexus"}: ${delivered} % of the tokens were delivered`);
	return { ...outcome, events, delivered, cpuUs: (((after ?? cpuSeconds(server.pid)) - before) * 1e6) / events };
}

const WARM_SECONDS = 2;

/** A short round of each, before it counts. */
export async function warm(sides: readonly Side[], folder: string, shape: Shape): Promise<void> {
	const tokens = shape.rate > 0 ? Math.min(shape.tokens, shape.rate * WARM_SECONDS) : shape.tokens;
	for (const side of sides) await round(side, folder, { ...shape, tokens });
}

/** The rounds of each side. All sides take turns, so that whatever else the machine does falls on all of them. */
export async function inTurns<Name extends string>(
	sides: Readonly<Record<Name, Side>>,
	folder: string,
	{ rounds, ...shape }: Shape & { rounds: number },
	held?: () => Promise<void>,
): Promise<Record<Name, Round[]>> {
	const named = Object.entries<Side>(sides);
	await warm(Object.values(sides), folder, shape);
	const results = Object.fromEntries(named.map(([name]): [string, Round[]] => [name, []]));
	for (let turn = 0; turn < rounds; turn++) {
		for (const [name, side] of named) results[name]?.push(await round(side, folder, shape, held));
	}
	return results as Record<Name, Round[]>;
}
