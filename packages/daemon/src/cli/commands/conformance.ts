/** `nexus conformance`: whether an adapter in any language keeps to the protocol. */

import { runConformance } from "@nexus-stream/adapter/host";
import { bundledCommand, isBundled } from "@nexus-stream/platforms";
import { exitCodeOf } from "@nexus-stream/protocol";
import type { CommandExit, Local } from "../command.ts";
import { oneLine } from "../terminal.ts";

export async function conformance(
	{ host, terminal }: Local,
	command: readonly string[],
	options: { json?: boolean; only?: string; account?: string; to?: string },
): CommandExit {
	const env = Object.fromEntries(Object.entries(host.env).filter((entry): entry is [string, string] => !!entry[1]));
	const { only, account, to } = options;
	const params = { only: only || undefined, account: account || undefined, target: to ? { to } : undefined };
	const [name = "", ...args] = command;
	const program = args.length === 0 && isBundled(name) ? bundledCommand(name) : command;
	const report = await runConformance(program, { env, cwd: host.cwd(), ...params }, ({ name, result, detail, ms }) => {
		if (options.json) return;
		const why = detail === undefined ? "" : `: ${oneLine(detail, 300)}`;
		terminal.out(`${result.padEnd(8)} ${name} (${ms} ms)${why}\n`);
	});
	if (options.json) terminal.json(report);
	else {
		const count = (result: string) => report.cases.filter((each) => each.result === result).length;
		terminal.out(`\n${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped\n`);
	}
	return report.passed ? 0 : exitCodeOf("invalid");
}
