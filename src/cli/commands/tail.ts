/** `nexus tail`: follows a run to its end, or a session for as long as one likes. */

import { isSessionLabel, NexusError } from "../../protocol/protocol.ts";
import type { Context, Outcome } from "../command.ts";
import { concludeRun, createShow, type ShowOptions } from "../show.ts";
import { Hinted, noteDrop } from "../terminal.ts";

export interface TailOptions extends ShowOptions {
	after?: number;
}

export async function tail(context: Context, target: string, options: TailOptions): Outcome {
	return target.startsWith("run_") ? tailRun(context, target, options) : tailSession(context, target, options);
}

async function tailRun({ client, terminal }: Context, runId: string, options: TailOptions): Outcome {
	const after = options.after ?? 0;
	const show = createShow(terminal, { ...options, partial: after > 0 });
	for await (const { text } of client.follow(`/v1/runs/${runId}/stream`, { after, onDrop: noteDrop(terminal) })) {
		const end = show.record(text);
		if (end) return concludeRun(end, show.violation, terminal);
	}
	// Nothing was left to read after that offset.
	return 0;
}

interface SessionJson {
	turns: unknown[];
	live: unknown;
	queued: unknown[];
	stream_offset: number;
}

/** The API answers for any name; one that nothing was ever sent to is a typing mistake. */
const isNew = ({ turns, live, queued, stream_offset }: SessionJson): boolean =>
	turns.length === 0 && queued.length === 0 && live === null && stream_offset === 0;

async function tailSession({ client, terminal }: Context, session: string, options: TailOptions): Outcome {
	if (!isSessionLabel(session))
		throw new NexusError("invalid", `${JSON.stringify(session)} is neither a run id nor a session label`);
	const path = `/v1/sessions/${encodeURIComponent(session)}`;
	const known = await client.get<SessionJson>(`${path}/turns?limit=1`);
	if (isNew(known))
		throw new Hinted(
			new NexusError("not_found", `there is no session ${session}`),
			"`nexus sessions` lists them; a session begins with its first message",
		);
	// From the beginning of what runs now, or from the next message on.
	const after = options.after ?? known.stream_offset;
	const show = createShow(terminal, { ...options, partial: options.after !== undefined });
	for await (const { text } of client.follow(`${path}/stream`, { after, onDrop: noteDrop(terminal) })) {
		const end = show.record(text);
		if (end) concludeRun(end, show.violation, terminal);
	}
	return 0;
}
