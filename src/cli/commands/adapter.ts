/** `nexus adapter add` and `remove`: accounts on chat platforms, with secrets that only their owner can read. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { exitCodeOf, isSessionLabel, NexusError, toNexusError } from "../../protocol/protocol.ts";
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
import { createClient } from "../client.ts";
import type { Local, Outcome } from "../command.ts";
import { type Host, placeOf } from "../host.ts";
import { oneLine } from "../terminal.ts";

interface Where {
	account: string;
	data?: string;
	config?: string;
}

export interface AddOptions extends Where {
	set?: string[];
	secretFile?: string[];
	secretEnv?: string[];
	test: boolean;
}

interface Setting {
	name: string;
	secret: boolean;
	required: boolean;
	prompt: string;
	default?: string;
}

type Config = Awaited<ReturnType<typeof loadConfig>>;

const configOf = (host: Host, { data, config }: Where) => loadConfig({ data, config }, placeOf(host));

export async function add(local: Local, channel: string, options: AddOptions): Outcome {
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
	const settings = host.stdin.isTTY ? await ask(host, wanted, given) : given;
	const configured = config.channels?.[channel]?.accounts?.[options.account]?.settings ?? {};
	const missing = wanted.filter(({ name, required }) => required && !settings[name] && !configured[name]);
	if (missing.length > 0) {
		const names = missing.map(({ name, prompt }) => `${name} (${prompt})`).join(", ");
		throw new NexusError("invalid", `missing: ${names}; give it with --secret-env, --secret-file or --set`);
	}
	const account = { channel, account: options.account, settings };
	if (options.test) {
		const { ok, detail } = await checkAccount(config, account);
		terminal.note(oneLine(`${ok ? "works" : "does not work"}: ${detail}`, 500));
		if (!ok) {
			terminal.note("nothing was stored; --no-test stores it all the same");
			return exitCodeOf("unavailable");
		}
	}
	terminal.out(`stored ${storeAccount(config.data, account)}\n`);
	await tellDaemon(local, config, "the daemon uses it now", "`nexus up` uses it");
	return 0;
}

/** A running daemon takes up what was stored or removed; one that cannot be told does so when it is started again. */
async function tellDaemon(local: Local, { data, token }: Config, told: string, idle: string): Promise<void> {
	const { host, terminal } = local;
	const paths = dataPaths(data);
	if (!isDataDirLocked(paths)) {
		terminal.note(idle);
		return;
	}
	try {
		const url = readDaemonRecord(paths)?.url;
		if (url === undefined) throw new NexusError("unavailable", "it is not ready yet");
		const known = token ?? readToken(paths);
		const client = createClient(host, { url, ...(known !== undefined && { token: known }) });
		await client.post("/v1/accounts/reload");
		terminal.note(told);
	} catch (cause) {
		terminal.note(oneLine(`restart the daemon: it could not be told (${toNexusError(cause).message})`, 500));
	}
}

export async function remove(local: Local, channel: string, options: Where): Outcome {
	const config = await configOf(local.host, options);
	const { data } = config;
	if (!removeAccount(data, { channel, account: options.account }))
		throw new NexusError("not_found", `no account ${channel}/${options.account} is stored in ${data}`);
	const { forgetSettings } = await adapterCheck();
	forgetSettings(data, channel, options.account);
	local.terminal.out(`removed ${channel}/${options.account}\n`);
	await tellDaemon(local, config, "the daemon has let it go", "no daemon uses it");
	return 0;
}

/** From flags; a name that the adapter does not know is a typing mistake. */
function givenSettings(host: Host, options: AddOptions, wanted: readonly Setting[]): Record<string, string> {
	const settings: Record<string, string> = {};
	const take = (flag: string, pairs: readonly string[] = [], value: (text: string) => string) => {
		for (const pair of pairs) {
			const at = pair.indexOf("=");
			if (at < 1) throw new NexusError("invalid", `${flag} takes name=value`);
			const name = pair.slice(0, at);
			if (!wanted.some((setting) => setting.name === name))
				throw new NexusError("invalid", `${flag} ${name}: allowed names: ${wanted.map(({ name }) => name).join(", ")}`);
			settings[name] = value(pair.slice(at + 1));
		}
	};
	take("--set", options.set, (text) => text);
	take("--secret-file", options.secretFile, (path) => readSecret(path, host.cwd()));
	take("--secret-env", options.secretEnv, (variable) => {
		const value = host.env[variable];
		if (value) return value;
		throw new NexusError("invalid", `--secret-env: the variable ${variable} is not set`);
	});
	return settings;
}

function readSecret(path: string, cwd: string): string {
	try {
		return readFileSync(resolve(cwd, path), "utf8").trim();
	} catch (cause) {
		throw new NexusError("invalid", `--secret-file ${path}: ${(cause as Error).message}`, { cause });
	}
}

/** What was not given; secrets are not echoed. */
async function ask(
	{ stdin, stderr }: Host,
	wanted: readonly Setting[],
	given: Record<string, string>,
): Promise<Record<string, string>> {
	let hidden = false;
	const output = new Writable({
		write(chunk: Buffer, _encoding, done) {
			if (!hidden) stderr.write(chunk);
			done();
		},
	});
	const lines = createInterface({ input: stdin, output, terminal: true });
	const left = new AbortController();
	lines.once("close", () => left.abort());
	const settings = { ...given };
	try {
		for (const setting of wanted.filter(({ name }) => given[name] === undefined)) {
			for (;;) {
				const prompt = `${oneLine(`${setting.prompt}${setting.default ? ` [${setting.default}]` : ""}`, 300)}: `;
				if (setting.secret) stderr.write(prompt);
				hidden = setting.secret;
				const answer = (await lines.question(setting.secret ? "" : prompt, { signal: left.signal })).trim();
				if (hidden) stderr.write("\n");
				hidden = false;
				if (answer !== "") settings[setting.name] = answer;
				if (answer !== "" || !setting.required || setting.default !== undefined) break;
			}
		}
	} catch (cause) {
		if ((cause as Error).name !== "AbortError") throw cause;
		// Ctrl-C or Ctrl-D, in the middle of a line.
		stderr.write("\n");
		throw new NexusError("aborted", "stopped: nothing was stored", { cause });
	} finally {
		lines.close();
	}
	return settings;
}
