/** The runtime contract as commands use it: the daemon is found like for every other command, and failures are worded for a terminal. */

import { type DescMessage, type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
	type ConnectError,
	createRuntime,
	nexusErrorOf,
	ReasonCode,
	type Runtime,
	reasonCodeOf,
} from "@nexus-stream/client/runtime";
import { NexusError } from "@nexus-stream/protocol";
import { findDaemon, LIMITS, START_HINT, withHint } from "./client.ts";
import type { CommandContext } from "./command.ts";
import { since } from "./table.ts";
import { Hinted, noteDrop } from "./terminal.ts";

export function runtimeOf({ host, where, terminal }: CommandContext): Runtime {
	const { giveUpMs } = LIMITS;
	const runtime = createRuntime({
		locate: () => findDaemon({ host, where }),
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
