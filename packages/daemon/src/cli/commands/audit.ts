/** `nexus audit`: what happened, for a person who looks it up or hands it on as a file. */

import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
	type AuditEvent,
	AuditEventSchema,
	AuditExportFormat,
} from "@nexus-stream/client/gen/nexus/runtime/v1/audit_pb";
import { ReasonCode } from "@nexus-stream/client/runtime";
import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Command } from "commander";
import {
	type CommandContext,
	type Declarations,
	type ListOptions,
	remote,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import { afterOf, enumValue, jsonOf, runtimeOf, sinceTime, wordOf } from "../runtime.ts";
import { list } from "../table.ts";
import { Hinted, oneLine } from "../terminal.ts";

const filtered = (command: Command): Command =>
	remote(command)
		.option("--domain <domain>", "only this part: runs, messages, tools, approvals, sign-in …")
		.option("--operation <name>", "only this: started, settled, refused …")
		.option("--app <id>", "only this application's")
		.option("--since <time>", "from then on: 30m, 12h, 7d, a date, or a time as 2026-11-17T08:00:00Z")
		.option("--until <time>", "before then");

export const declare: Declarations = {
	audit(command, local) {
		command.addHelpText(
			"after",
			"\nExamples:\n  nexus audit --domain approvals --since 1d\n  nexus audit export --format csv -o audit.csv\n  nexus audit export --gzip --since 2026-11-01 -o audit.ndjson.gz",
		);
		filtered(command.command("list", { isDefault: true }))
			.description("list events, newest first")
			.option("--json", "one JSON object a line")
			.option("--limit <count>", "at most this many", wholeNumber, 50)
			.action(withDaemon(local, listAudit));
		filtered(command.command("export"))
			.description("write the log as a file, up to the newest event on record")
			.option("--format <format>", "ndjson or csv", "ndjson")
			.option("-o, --output <file>", "where to; stdout when left out")
			.option("--gzip", "compress the file")
			.option("--after <sequence>", "only what follows this event: continues an export that broke off", wholeNumber)
			.action(withDaemon(local, exportAudit));
	},
};

type Filter = "domain" | "operation" | "app" | "since" | "until";
type FilterOptions = Partial<Record<Filter, string>>;

interface ExportOptions extends FilterOptions {
	format: string;
	output?: string;
	gzip?: boolean;
	after?: number;
}

const filterOf = ({ domain = "", operation = "", app = "", since, until }: FilterOptions) => ({
	domain,
	operation,
	appId: app,
	fromTime: since === undefined ? undefined : timestampOf(since),
	toTime: until === undefined ? undefined : timestampOf(until),
});

const timestampOf = (text: string) => timestampFromDate(new Date(timeOf(text, Date.now())));

async function listAudit(context: CommandContext, options: ListOptions<Filter>) {
	const { audit } = runtimeOf(context);
	const events: AuditEvent[] = [];
	let before: bigint | undefined;
	do {
		const pageSize = options.limit - events.length;
		const page = await audit.listAuditEvents({ filter: filterOf(options), pageSize, before });
		events.push(...page.events);
		before = page.nextBefore;
	} while (before !== undefined && events.length < options.limit);
	return list(context.terminal, options.json, events, {
		none: "nothing is on record",
		json: (event) => jsonOf(AuditEventSchema, event),
		columns: {
			EVENT: ({ sequence }) => String(sequence),
			WHEN: ({ timestamp }) => sinceTime(timestamp),
			WHAT: ({ domain, operation }) => `${domain}/${operation}`,
			WHO: ({ caller, appId }) => oneLine([caller, appId].filter(Boolean).join(" "), 60),
			DETAILS: ({ reasonCode, payload }) =>
				oneLine([reasonOf(reasonCode), payload ? JSON.stringify(payload) : ""].filter(Boolean).join(" "), 300),
		},
		optional: ["WHO", "WHEN"],
	});
}

const reasonOf = (code: ReasonCode): string =>
	code === ReasonCode.UNSPECIFIED ? "" : wordOf(ReasonCode, code).toUpperCase();

async function exportAudit(context: CommandContext, options: ExportOptions) {
	const { host } = context;
	const { output, gzip = false } = options;
	if (gzip && output === undefined) throw new NexusError("invalid", "--gzip needs a file: name it with -o");
	const counted = progress(context, output !== undefined);
	const pieces = counted.count(chunksOf(context, options));
	if (output !== undefined) await writeWhole(resolve(host.cwd(), output), pieces, gzip);
	else await pipeline(pieces, host.stdout as Writable, { end: false });
	counted.done();
}

/** Resumes after the last chunk when the connection is lost. */
async function* chunksOf(context: CommandContext, options: ExportOptions): AsyncGenerator<string> {
	const format = enumValue(AuditExportFormat, options.format, "--format");
	const text = new TextDecoder();
	const chunks = runtimeOf(context).audit.exportAuditEvents({
		filter: filterOf(options),
		format,
		...afterOf(options.after),
	});
	for await (const { chunk } of chunks) if (chunk.length > 0) yield text.decode(chunk, { stream: true });
}

/** Under another name until it is whole: half an export is never taken for one. */
export async function writeWhole(file: string, pieces: Readable, gzip: boolean): Promise<void> {
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
		throw new Hinted(
			new NexusError(
				"unavailable",
				`the export broke off (${error.message}); what had arrived was not whole and is removed`,
			),
			"run it again; for a log that is too long, take it month by month with --since and --until",
		);
	}
}

const NOTE_EVERY_MS = 2000;

/** Shows a person who waits for a file how much has arrived. */
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

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `12h` is twelve hours before now, a date its beginning in UTC; as RFC 3339. */
export function timeOf(text: string, now: number): string {
	const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
	if (count !== undefined && unit !== undefined) return new Date(now - Number(count) * UNIT_MS[unit]!).toISOString();
	const at = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text)
		? Date.parse(text)
		: Number.NaN;
	if (!Number.isNaN(at)) return new Date(at).toISOString();
	throw new NexusError(
		"invalid",
		`${JSON.stringify(text)} is not a time; use 30m, 12h, 7d, 2026-11-17 or 2026-11-17T08:00:00Z`,
	);
}
