/** `nexus audit`: what happened, for a person who looks it up or hands it on as a file. */

import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type AuditEventJson, NexusError, toNexusError } from "@nexus-stream/protocol";
import type { CommandContext, CommandExit } from "../command.ts";
import { since as ago, table } from "../table.ts";
import { Hinted, oneLine } from "../terminal.ts";
import { timeOf } from "../time.ts";

export interface FilterOptions {
	domain?: string;
	operation?: string;
	app?: string;
	since?: string;
	until?: string;
}

export interface ListAuditOptions extends FilterOptions {
	limit: number;
	json?: boolean;
}

export interface ExportOptions extends FilterOptions {
	format: string;
	output?: string;
	gzip?: boolean;
	after?: number;
}

const queryOf = ({ domain, operation, app, since, until }: FilterOptions) => ({
	domain,
	operation,
	app_id: app,
	since: since === undefined ? undefined : timeOf(since, Date.now()),
	until: until === undefined ? undefined : timeOf(until, Date.now()),
});

export async function listAudit({ client, terminal }: CommandContext, options: ListAuditOptions): CommandExit {
	const events: AuditEventJson[] = [];
	let before: number | undefined;
	do {
		const limit = options.limit - events.length;
		const page = await client.api.audit({ ...queryOf(options), limit, before });
		events.push(...page.events);
		before = page.next_before;
	} while (before !== undefined && events.length < options.limit);
	if (events.length === 0) terminal.note("nothing is on record");
	if (options.json) for (const event of events) terminal.json(event);
	else
		table(
			terminal,
			["EVENT", "WHEN", "WHAT", "WHO", "DETAILS"],
			events.map(({ sequence, timestamp, domain, operation, caller = "", app_id, payload, reason_code }) => [
				String(sequence),
				ago(Date.parse(timestamp)),
				`${domain}/${operation}`,
				oneLine([caller, app_id].filter(Boolean).join(" "), 60),
				oneLine([reason_code ?? "", payload ? JSON.stringify(payload) : ""].filter(Boolean).join(" "), 300),
			]),
			["WHO", "WHEN"],
		);
	return 0;
}

export async function exportAudit(context: CommandContext, options: ExportOptions): CommandExit {
	const { client, host } = context;
	const { output, gzip = false, after } = options;
	const format = formatOf(options.format);
	if (gzip && output === undefined) throw new NexusError("invalid", "--gzip needs a file: name it with -o");
	const told = progress(context, output !== undefined);
	const pieces = told.count(client.api.exportAudit({ ...queryOf(options), format, after }));
	if (output !== undefined) await writeFile(context, resolve(host.cwd(), output), pieces, gzip);
	else await pipeline(pieces, host.stdout as Writable, { end: false });
	told.done();
	return 0;
}

function formatOf(text: string): "ndjson" | "csv" {
	if (text === "ndjson" || text === "csv") return text;
	throw new NexusError("invalid", `--format ${text}: use ndjson or csv`);
}

/** Under another name until it is whole: half an export is never taken for one. */
async function writeFile(_context: CommandContext, file: string, pieces: Readable, gzip: boolean): Promise<void> {
	const part = `${file}.part`;
	const written = createWriteStream(part);
	try {
		if (gzip) await pipeline(pieces, createGzip(), written);
		else await pipeline(pieces, written);
		await rename(part, file);
	} catch (cause) {
		await rm(part, { force: true });
		const error = toNexusError(cause);
		if (error.code !== "unavailable") throw error;
		const { message } = error;
		throw new Hinted(
			new NexusError("unavailable", `the export broke off (${message}); what had arrived was not whole and is removed`),
			"run it again; for a log that is too long, take it month by month with --since and --until",
		);
	}
}

const NOTE_EVERY_MS = 2000;

/** For whoever waits for a file: how much there is so far. */
function progress({ terminal, host }: CommandContext, isFile: boolean) {
	let bytes = 0;
	let lines = 0;
	let notedAt = performance.now();
	const so = () => `${lines} lines, ${(bytes / 1e6).toFixed(1)} MB`;
	const take = (text: string) => {
		bytes += Buffer.byteLength(text);
		for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
		const now = performance.now();
		if (!isFile || !host.stderr.isTTY || now - notedAt < NOTE_EVERY_MS) return;
		notedAt = now;
		terminal.note(terminal.dim(so()));
	};
	return {
		count: (texts: AsyncIterable<string>): Readable =>
			Readable.from(
				(async function* () {
					for await (const text of texts) {
						take(text);
						yield text;
					}
				})(),
			),
		done: () => {
			if (isFile) terminal.note(so());
		},
	};
}
