/** `nexus doctor`: what a daemon started here would need, looked at one by one, with what to do about it. */

import {
	adapterCheck,
	type ConfigFlags,
	loadConfig,
	type NexusConfig,
	requireTokenOnPublicHost,
} from "../../runtime/runtime.ts";
import { agents, engine, keys, mcp, plugins, tools } from "../checks/engine.ts";
import { type Check, type Finding, fail, ok, warn } from "../checks/finding.ts";
import { daemon, database, dataDir, disk, grpcPort, node, page, port, secret, token } from "../checks/machine.ts";
import { type Declarations, type JsonOption, type Local, onThisMachine } from "../command.ts";
import { configSourceOf, type Host } from "../host.ts";
import { oneLine, type Terminal } from "../terminal.ts";

export const declare: Declarations = {
	doctor: (command, local) =>
		command
			.option("--json", "one JSON object a line")
			.option("--host <host>", "as for `nexus up`")
			.option("--port <port>", "as for `nexus up`")
			.option("--grpc-port <port>", "as for `nexus up`")
			.option("--data <dir>", "as for `nexus up`")
			.option("--token <token>", "as for `nexus up`")
			.option("--config <file>", "as for `nexus up`")
			.option("--deep", "read all of the database and look for damage, however large it is")
			.action(onThisMachine(local, doctor)),
};

async function doctor({ host, terminal }: Local, options: ConfigFlags & JsonOption & { deep?: boolean }) {
	const findings: Finding[] = [];
	const look = async (checks: Check[]) => {
		for (const [check, run] of checks) {
			const finding = { check, ...(await run().catch(unexpected)) };
			findings.push(finding);
			if (options.json) terminal.json(finding);
			else terminal.out(line(finding, terminal));
		}
	};
	let config: NexusConfig | undefined;
	await look([
		["node", async () => node()],
		[
			"config",
			async () => {
				config = await loadConfig(options, configSourceOf(host));
				requireTokenOnPublicHost(config);
				return ok(config.file ?? "no nexus.yaml: the defaults apply");
			},
		],
	]);
	// Only the configuration says which directory, port and engine are meant.
	if (config) {
		await look(checksOf(config, host.env, options.deep === true));
		await look(await accountChecks(config).catch((cause) => [["accounts", async () => unexpected(cause)]]));
	} else if (!options.json) terminal.out("      the other checks follow once the configuration is right\n");
	return findings.some((finding) => finding.result === "fail") ? 1 : 0;
}

const unexpected = (cause: unknown) =>
	fail(cause instanceof Error ? cause.message : String(cause), "correct this, then run it again");

/** As wide as what stands before a detail. */
const INDENT = " ".repeat(16);

function line({ check, result, detail, todo }: Finding, terminal: Terminal): string {
	const mark = terminal.paint(result === "ok" ? "green" : result === "warn" ? "yellow" : "red", result.padEnd(4));
	const lines = [...detail.trimEnd().split("\n"), ...(todo ? [`→ ${todo}`] : [])];
	return `${mark}  ${check.padEnd(8)}  ${lines.join(`\n${INDENT}`).replace(/ +$/gm, "")}\n`;
}

const checksOf = (config: NexusConfig, env: Host["env"], deep: boolean): Check[] => [
	["data", async () => dataDir(config)],
	["disk", async () => disk(config)],
	["database", () => database(config, deep)],
	["token", async () => token(config)],
	["secret", async () => secret(config, env)],
	["daemon", () => daemon(config)],
	["port", () => port(config)],
	["grpc", () => grpcPort(config)],
	["engine", () => engine(config, env)],
	["keys", async () => keys(config, env)],
	["tools", async () => tools(config, env)],
	...(config.agents ? [["agents", async () => agents(config)] satisfies Check] : []),
	["plugins", () => plugins(config)],
	["mcp", async () => mcp(config, env)],
	["page", async () => page()],
];

/** One for each account: whether its settings are complete, and whether the platform takes them. */
async function accountChecks(config: NexusConfig): Promise<Check[]> {
	const { accountsOf, askAdapter, checkAccount, idleOf } = await adapterCheck();
	const accounts = accountsOf(config);
	const idle = idleOf(config).map(
		({ channel, todo }): Check => [
			"account",
			async () => warn(`${channel} has an adapter and no account, so it is not started`, todo),
		],
	);
	if (accounts.length === 0 && idle.length === 0)
		return [["accounts", async () => ok("none; `nexus adapter add telegram` adds one")]];
	const checks = accounts.map(
		({ channel, account, settings }): Check => [
			"account",
			async () => {
				const name = `${channel}/${account}`;
				const { appliesTo } = await import("@nexus-stream/adapter/info");
				const inFile = config.channels?.[channel]?.accounts?.[account] !== undefined;
				const add = `nexus adapter add ${channel}${account === "main" ? "" : ` --account ${account}`}`;
				const todo = inFile ? `correct it in ${config.file}` : `add it again with \`${add}\``;
				const { settings: wanted } = await askAdapter(config, channel);
				const needed = wanted.filter((each) => each.required && appliesTo(each, wanted, settings));
				const missing = needed.filter((each) => !settings[each.name] && !each.default).map((each) => each.name);
				if (missing.length > 0) return fail(`${name} lacks ${missing.join(", ")}`, todo);
				const { ok: works, detail } = await checkAccount(config, { channel, account, settings });
				return works ? ok(`${name}: ${oneLine(detail, 500)}`) : fail(`${name}: ${oneLine(detail, 500)}`, todo);
			},
		],
	);
	return [...idle, ...checks];
}
