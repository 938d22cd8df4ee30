/** `nexus send`: a message in, the answer out as it comes. Ctrl-C stops the run, not only the reading. */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { isSessionLabel, NexusError } from "@nexus-stream/protocol";
import type { AttachmentUpload, MessageAccepted, MessageRequest } from "@nexus-stream/protocol/api";
import { contentTypeOf } from "../../std/content-type.ts";
import { overRestarts } from "../client.ts";
import { type CommandContext, type Declarations, each, remoteFrames, withDaemon } from "../command.ts";
import { onInterrupt } from "../interrupt.ts";
import type { ShowOptions } from "../show.ts";
import { noteDrop } from "../terminal.ts";
import { tailRun } from "./tail.ts";

export const declare: Declarations = {
	send: (command, local) =>
		remoteFrames(command)
			.argument("<text>", "the message; - reads it from stdin")
			.option("-s, --session <session>", "the session it belongs to", "default")
			.option("-a, --attach <file>", "send a file along (repeatable)", each)
			.option("--reasoning", "show the reasoning, too")
			.addHelpText(
				"after",
				'\nExamples:\n  nexus send "hello" --session work\n  nexus send "/demo tokens=200 rate=50 tools=2" --reasoning\n  git diff | nexus send - > review.md\n  nexus send hello --json | jq -c \'select(.type == "stream.begin") | [.modality, .message_id]\'\n\nOnly the answer\'s text goes to stdout. --json prints every stream of the run; what a stream\nholds (text, reasoning, tool, card …) stands in the stream.begin of its message_id.',
			)
			.action(withDaemon(local, send)),
};

interface SendOptions extends ShowOptions {
	session: string;
	attach?: string[];
}

const POST_ATTEMPTS_MAX = 5;
const QUEUE_POLL_MS = 250;

async function send(context: CommandContext, words: string, options: SendOptions) {
	const { terminal } = context;
	const onDrop = noteDrop(terminal);
	if (!isSessionLabel(options.session))
		throw new NexusError(
			"invalid",
			`${JSON.stringify(options.session)} is not a session label; use letters, digits and . _ : @ + -`,
		);
	const text = words === "-" ? await readAll(context.host.stdin) : words;
	if (text.trim() === "" && !options.attach?.length)
		throw new NexusError("invalid", "the message is empty: give a text, or a file with --attach");
	const stop = stopOnInterrupt(context);
	const accepted = await post(context, options, text);
	const runId = accepted.run_id ?? (await started(context, accepted.event_id, onDrop));
	stop.run(runId);
	const code = await tailRun(context, runId, options);
	// For a person, who may want to replay it.
	if (terminal.interactive && !options.json) terminal.note(terminal.dim(runId));
	return code;
}

/** The key makes a repeated request the same message, so a connection that breaks here costs nothing. */
async function post(
	{ client, host }: CommandContext,
	{ session, attach }: SendOptions,
	text: string,
): Promise<MessageAccepted> {
	const attachments = attach?.map((path) => attachment(path, host.cwd()));
	const message: MessageRequest = { text, idempotency_key: randomUUID(), attachments };
	for (let attempt = 1; ; attempt++) {
		try {
			return await client.api.send(session, message);
		} catch (cause) {
			if (attempt === POST_ATTEMPTS_MAX || !wasCutOff(cause)) throw cause;
			await sleep(100 * attempt);
		}
	}
}

/** The request may have arrived. A refused connection is different: there is no daemon to wait for. */
const wasCutOff = (cause: unknown) =>
	cause instanceof NexusError && cause.code === "unavailable" && /ECONNRESET|UND_ERR_SOCKET|EPIPE/.test(cause.message);

function attachment(path: string, cwd: string): AttachmentUpload {
	try {
		const data = readFileSync(resolve(cwd, path)).toString("base64");
		return { name: basename(path), content_type: contentTypeOf(path), data };
	} catch (cause) {
		throw new NexusError("invalid", `--attach ${path}: ${(cause as Error).message}`, { cause });
	}
}

/** A message for a busy session waits its turn; asks until it has become a run. */
async function started(
	{ client, terminal }: CommandContext,
	eventId: string,
	onDrop: (because: string) => void,
): Promise<string> {
	terminal.note(terminal.dim("the session is busy: queued"));
	for (let id = eventId; ; ) {
		const event = await overRestarts(() => client.api.event(id), onDrop);
		if (event.run_id !== undefined) return event.run_id;
		if (event.disposition === "cancelled") throw new NexusError("aborted", "the message was cancelled");
		if (event.disposition === "rejected" || event.disposition === "dropped")
			throw new NexusError(
				"unavailable",
				`the message was ${event.disposition}: ${event.because ?? "no reason given"}`,
			);
		if (event.superseded_by === undefined) await sleep(QUEUE_POLL_MS);
		else id = event.superseded_by;
	}
}

/** First Ctrl-C: stop the run and read its end. Second: leave at once. */
export function stopOnInterrupt({ client, terminal, host }: CommandContext) {
	let runId: string | undefined;
	let asked = false;
	const abort = () => {
		if (runId === undefined) return;
		terminal.note(terminal.dim("stopping (Ctrl-C again to leave at once)"));
		client.api.abort(runId).catch((cause: unknown) => {
			terminal.note(`nexus: could not stop the run: ${cause instanceof Error ? cause.message : String(cause)}`);
		});
	};
	onInterrupt(host, () => {
		asked = true;
		if (runId === undefined) terminal.note(terminal.dim("stopping as soon as the run has started"));
		else abort();
	});
	return {
		run(id: string) {
			runId = id;
			if (asked) abort();
		},
	};
}
