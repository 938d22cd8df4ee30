/** The runtime contract as commands use it: the daemon is found like for every other command, and failures are worded for a terminal. */

import { type DescMessage, type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
	type ConnectError,
	createRuntime,
	errorCodeOf,
	nexusErrorOf,
	ReasonCode,
	type Runtime,
	reasonCodeOf,
} from "@nexus-stream/client/runtime";
import { exitCodeOf, NexusError } from "@nexus-stream/protocol";
import { findDaemon, LIMITS, START_HINT, withHint } from "./client.ts";
import type { CommandContext, ListOptions } from "./command.ts";
import { onInterrupt } from "./interrupt.ts";
import { since } from "./table.ts";
import { type Colour, Hinted, noteDrop, oneLine, type Terminal } from "./terminal.ts";

export function runtimeOf({ host, where, terminal }: CommandContext): Runtime {
	const { giveUpMs } = LIMITS;
	const runtime = createRuntime({
		locate: () => findDaemon(host, where),
		fetch: askDaemon,
		reword,
		limits: { ...LIMITS, subscriptionGiveUpMs: giveUpMs },
	});
	runtime.on("runtime.disconnected", ({ message }) => noteDrop(terminal)(message));
	return runtime;
}

/** Throws for an answer that is not of the runtime contract. */
async function askDaemon(url: string, init: RequestInit): Promise<Response> {
	const response = await fetch(url, init);
	if (response.status === 401) throw withHint(new NexusError("unauthenticated", ""), response);
	if (/^application\/(json|proto|connect\+)/.test(response.headers.get("content-type") ?? "")) return response;
	const message = `what answers at ${new URL(url).origin} is not a Nexus daemon`;
	throw withHint(new NexusError("unavailable", message), new Response(null, { status: 200 }));
}

function reword(cause: ConnectError): NexusError {
	const error = nexusErrorOf(cause);
	const isDaemons = reasonCodeOf(cause) !== ReasonCode.UNSPECIFIED;
	if (error.code !== "unavailable" || isDaemons || error instanceof Hinted) return error;
	return new Hinted(error, START_HINT);
}

/** A message as `--json` prints it: as the HTTP API spells it. */
export const jsonOf = <Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): object =>
	toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true }) as JsonValue & object;

/** Empty for a time that is not set. */
export const sinceTime = (time: Timestamp | undefined): string => (time ? since(timestampMs(time)) : "");

/** The name of an enum's value in lower case, such as `completed`. */
export const wordOf = (values: Readonly<Record<string, number>>, value: number): string =>
	Object.entries(values)
		.find(([, each]) => each === value)?.[0]
		.toLowerCase() ?? String(value);

/** The value with this name, as `wordOf` spells it. */
export function enumValue<Value extends number>(
	values: Readonly<Record<string, Value>>,
	word: string,
	flag: string,
): Value {
	const names = Object.keys(values).filter((name) => name !== "UNSPECIFIED");
	const found = values[word.toUpperCase()];
	if (found !== undefined && names.includes(word.toUpperCase())) return found;
	throw new NexusError("invalid", `${flag} ${word}: use one of ${names.join(", ").toLowerCase()}`);
}

/** Follows a job or a workflow to its end. The exit code when the person leaves it running before that. */
export async function followWork<Event>(
	{ host, terminal }: CommandContext,
	command: "jobs" | "workflow",
	id: string,
	events: (signal: AbortSignal) => AsyncIterable<Event>,
	show: (event: Event) => void,
): Promise<number | undefined> {
	const left = new AbortController();
	onInterrupt(host, () => left.abort());
	try {
		for await (const event of events(left.signal)) show(event);
		return undefined;
	} catch (cause) {
		if (!left.signal.aborted) throw cause;
		terminal.note(`${id} goes on`);
		terminal.note(`  hint: \`nexus ${command} watch ${id}\` follows it, \`nexus ${command} cancel ${id}\` ends it`);
		return exitCodeOf("aborted");
	}
}

const STATE_COLOUR: Readonly<Record<string, Colour>> = {
	completed: "green",
	failed: "red",
	timeout: "red",
	running: "yellow",
};

export function paintState(terminal: Terminal, state: string): string {
	const colour = STATE_COLOUR[state];
	return colour ? terminal.paint(colour, state) : terminal.dim(state);
}

export function exitCodeOfWork(state: string, reasonCode: ReasonCode): number {
	if (state === "completed") return 0;
	return exitCodeOf(state === "canceled" ? "aborted" : errorCodeOf(reasonCode));
}

/** The options of a list of jobs or workflows. */
export type WorkListOptions = ListOptions<"state" | "app">;

export const workQuery = <State extends number>(
	states: Readonly<Record<string, State>>,
	{ state, app = "", limit }: WorkListOptions,
) => ({ appId: app, pageSize: limit, states: state === undefined ? [] : [enumValue(states, state, "--state")] });

export const afterOf = (after: number | undefined) => (after === undefined ? {} : { after: BigInt(after) });

/** Does the same to each of several things, and prints a line for each. */
export async function forEach(
	{ terminal }: CommandContext,
	ids: readonly string[],
	act: (id: string) => Promise<string>,
) {
	for (const id of ids) terminal.out(`${oneLine(await act(id), 200)}\n`);
}
