/** `nexus adapter` and `conformance`: accounts on chat platforms, and whether an adapter keeps to the protocol. */

import { runConformance } from "@nexus-stream/adapter/host";
import { appliesTo } from "@nexus-stream/adapter/info";
import type { AdapterSetting } from "@nexus-stream/adapter/port";
import { bundledCommand, isBundled } from "@nexus-stream/platforms";
import { exitCodeOf, isSessionLabel, NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Command } from "commander";
import {
	adapterCheck,
	dataPaths,
	isDataDirLocked,
	loadConfig,
	readDaemonRecord,
	readToken,
	removeAccount,
	storeAccount,
} from "../../runtime/runtime.ts";
import { type AccountSettings, ask, faultOf, readText } from "../ask.ts";
import { clientFor } from "../client.ts";
import { type Declarations, each, type JsonOption, type Local, onThisMachine } from "../command.ts";
import { configSourceOf, type Host } from "../host.ts";
import { oneLine } from "../terminal.ts";

const ofAccount = (command: Command): Command =>
	command
		.option("--data <dir>", "the daemon's data directory (NEXUS_DATA)")
		.option("--config <file>", "its configuration (NEXUS_CONFIG)");

export const declare: Declarations = {
	adapter(command, local) {
		const added = command
			.command("add")
			.description("ask for an account's settings, test the connection, and store them readable only by you")
			.argument(
				"<channel>",
				"telegram, discord, slack, whatsapp, sms, gmail, imessage, signal, nostr, or one of nexus.yaml",
			)
			.option("--account <account>", "the account's name in Nexus, of your choice", "main")
			.option("--set <name=value>", "a setting, without being asked (repeatable)", each)
			.option("--secret-file <name=file>", "a setting from a file (repeatable)", each)
			.option("--secret-env <name=variable>", "a setting from an environment variable (repeatable)", each)
			.option("--no-test", "do not test the connection");
		ofAccount(added)
			.addHelpText(
				"after",
				"\nExamples:\n  nexus adapter add telegram\n  nexus adapter add telegram --secret-env token=BOT_TOKEN < /dev/null",
			)
			.action(onThisMachine(local, add));
		const removed = command
			.command("remove")
			.description("forget an account's settings and secrets")
			.argument("<channel>", "its channel")
			.option("--account <account>", "its name", "main");
		ofAccount(removed).action(onThisMachine(local, remove));
	},
	conformance: (command, local) =>
		command
			.option("--json", "print the report as JSON")
			.argument(
				"<command...>",
				"the adapter's command line without its verb, after --; or the name of one that comes with Nexus",
			)
			.option("--account <id>", "the account of NEXUS_ACCOUNT_FILE, for adapters that need one")
			.option("--to <address>", "where test messages go")
			.option("--only <text>", "only cases whose name contains this")
			.addHelpText(
				"after",
				"\nExamples:\n  nexus conformance -- python3 my_adapter.py\n  NEXUS_ACCOUNT_FILE=account.json nexus conformance telegram --account main --to 42",
			)
			.action(onThisMachine(local, conformance)),
};

interface Where {
	account: string;
	data?: string;
	config?: string;
}

interface AddAdapterOptions extends Where {
	set?: string[];
	secretFile?: string[];
	secretEnv?: string[];
	test: boolean;
}

type Config = Awaited<ReturnType<typeof loadConfig>>;

const configOf = (host: Host, { data, config }: Where) => loadConfig({ data, config }, configSourceOf(host));

async function add(local: Local, channel: string, options: AddAdapterOptions) {
	const { host, terminal } = local;
	// As `nexus.yaml` has them, and a part of the labels of sessions.
	if (!isSessionLabel(options.account))
		throw new NexusError(
			"invalid",
			`--account: ${JSON.stringify(options.account)} is not a name; use letters, digits and . _ : @ + -`,
		);
	const config = await configOf(host, options);
	const { askAdapter, checkAccount } = await adapterCheck();
	const { settings: wanted } = await askAdapter(config, channel);
	const given = givenSettings(host, options, wanted);
	const configured = config.channels?.[channel]?.accounts?.[options.account]?.settings ?? {};
	const check = (settings: AccountSettings) => checkAccount(config, { channel, account: options.account, settings });
	let settings = given;
	for (let isAgain = false; ; isAgain = true) {
		if (host.stdin.isTTY) settings = await ask(host, wanted, settings, isAgain);
		refuseMissing(wanted, { ...settings, ...configured });
		if (!options.test) break;
		const { ok, detail } = await check(settings);
		terminal.note(oneLine(`${ok ? "works" : "does not work"}: ${detail}`, 500));
		if (ok) break;
		if (!host.stdin.isTTY) {
			terminal.note("nothing was stored; --no-test stores it all the same");
			return exitCodeOf("unavailable");
		}
		terminal.note("Enter keeps an answer; Ctrl-C leaves without storing anything");
	}
	terminal.out(`stored ${storeAccount(config.data, { channel, account: options.account, settings })}\n`);
	await tellDaemon(local, config, "the daemon uses it now", "`nexus up` uses it");
}

function refuseMissing(wanted: readonly AdapterSetting[], settings: AccountSettings): void {
	const missing = wanted.filter(
		(setting) => setting.required && !settings[setting.name] && appliesTo(setting, wanted, settings),
	);
	if (missing.length === 0) return;
	const names = missing.map(({ name, prompt }) => `${name} (${prompt})`).join(", ");
	throw new NexusError("invalid", `missing: ${names}; give it with --secret-env, --secret-file or --set`);
}

/** A running daemon reloads its accounts; one that cannot be reached does so at its next start. */
async function tellDaemon(local: Local, { data, token }: Config, told: string, idle: string): Promise<void> {
	const { host, terminal } = local;
	const paths = dataPaths(data);
	if (!isDataDirLocked(paths)) return terminal.note(idle);
	try {
		const url = readDaemonRecord(paths)?.url;
		if (url === undefined) throw new NexusError("unavailable", "it is not ready yet");
		await clientFor(host, { url, token: token ?? readToken(paths) }).api.reloadAccounts();
		terminal.note(told);
	} catch (cause) {
		terminal.note(oneLine(`restart the daemon: it could not be reached (${toNexusError(cause).message})`, 500));
	}
}

async function remove(local: Local, channel: string, options: Where) {
	const config = await configOf(local.host, options);
	const { data } = config;
	if (!removeAccount(data, { channel, account: options.account }))
		throw new NexusError("not_found", `no account ${channel}/${options.account} is stored in ${data}`);
	(await adapterCheck()).forgetSettings(data, channel, options.account);
	local.terminal.out(`removed ${channel}/${options.account}\n`);
	await tellDaemon(local, config, "the daemon has let it go", "no daemon uses it");
}

/** From flags; a name that the adapter does not know is a typing mistake. */
function givenSettings(host: Host, options: AddAdapterOptions, wanted: readonly AdapterSetting[]): AccountSettings {
	const settings: AccountSettings = {};
	const take = (flag: string, pairs: readonly string[] = [], value: (text: string) => string) => {
		for (const pair of pairs) {
			const at = pair.indexOf("=");
			if (at < 1) throw new NexusError("invalid", `${flag} takes name=value`);
			const name = pair.slice(0, at);
			const setting = wanted.find((each) => each.name === name);
			if (setting === undefined)
				throw new NexusError("invalid", `${flag} ${name}: allowed names: ${wanted.map(({ name }) => name).join(", ")}`);
			const text = value(pair.slice(at + 1));
			const fault = faultOf(setting, text);
			if (fault !== undefined) throw new NexusError("invalid", `${flag} ${name}: ${fault}`);
			settings[name] = text;
		}
	};
	take("--set", options.set, (text) => text);
	take("--secret-file", options.secretFile, (path) => readText(host, path, `--secret-file ${path}`));
	take("--secret-env", options.secretEnv, (variable) => {
		const value = host.env[variable];
		if (value) return value;
		throw new NexusError("invalid", `--secret-env: the variable ${variable} is not set`);
	});
	return settings;
}

async function conformance(
	{ host, terminal }: Local,
	command: readonly string[],
	options: JsonOption & { only?: string; account?: string; to?: string },
) {
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
