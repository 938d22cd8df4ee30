/** The commands about the audit log, with their arguments and options. */

import type { Command } from "commander";
import type { Adding } from "./commands-approvals.ts";

const commands = () => import("./commands/audit.ts");

export function addAudit(nexus: Command, { remote, asJson, whole, run }: Adding): void {
	const audit = nexus
		.command("audit")
		.description("what happened: list it, or export it; alone it lists")
		.addHelpText(
			"after",
			"\nExamples:\n  nexus audit --domain approvals --since 1d\n  nexus audit export --format csv -o audit.csv\n  nexus audit export --gzip --since 2026-11-01 -o audit.ndjson.gz",
		);
	const filtered = (command: Command): Command =>
		remote(command)
			.option("--domain <domain>", "only this part: runs, messages, tools, approvals, sign-in …")
			.option("--operation <name>", "only this: started, settled, refused …")
			.option("--app <id>", "only this application's")
			.option("--since <time>", "from then on: 30m, 12h, 7d, a date, or a time as 2026-11-17T08:00:00Z")
			.option("--until <time>", "before then");

	asJson(filtered(audit.command("list", { isDefault: true })), "one JSON object a line")
		.description("list events, newest first")
		.option("--limit <count>", "at most this many", whole, 50)
		.action((options) => run(options, async (context) => (await commands()).listAudit(context, options)));

	filtered(audit.command("export"))
		.description("write the log as a file, up to what is on record now")
		.option("--format <format>", "ndjson or csv", "ndjson")
		.option("-o, --output <file>", "where to; stdout when left out")
		.option("--gzip", "compress the file")
		.option("--after <sequence>", "only what follows this event: where an export that broke off goes on", whole)
		.action((options) => run(options, async (context) => (await commands()).exportAudit(context, options)));
}
