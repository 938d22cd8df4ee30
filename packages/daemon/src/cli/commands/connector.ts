/** `nexus connector`: model providers for the runtime contract, with keys that go in and never come out. */

import { text as streamText } from "node:stream/consumers";
import type { AdapterSetting } from "@nexus-stream/adapter/port";
import { ConnectorSchema } from "@nexus-stream/client/gen/nexus/runtime/v1/connector_pb";
import { exitCodeOf, NexusError } from "@nexus-stream/protocol";
import type { Command } from "commander";
import { ask, readText } from "../ask.ts";
import {
	type CommandContext,
	type Declarations,
	each,
	type JsonOption,
	remote,
	remoteRows,
	withDaemon,
} from "../command.ts";
import type { Host } from "../host.ts";
import { forEach, jsonOf, runtimeOf } from "../runtime.ts";
import { list } from "../table.ts";
import { oneLine } from "../terminal.ts";

const withKey = (command: Command): Command =>
	command
		.option("--key-env <variable>", "take the key from an environment variable")
		.option("--key-file <file>", "take the key from a file")
		.option("--no-test", "do not test the connection");

export const declare: Declarations = {
	connector(command, local) {
		withKey(remote(command.command("add")))
			.description("add a model provider: ask for its key, test the connection, and keep the key encrypted")
			.argument("<id>", "its name, of your choice")
			.option("--type <type>", "openai, anthropic, google, openai-compatible or demo")
			.option("--endpoint <url>", "its address; needed for openai-compatible")
			.option("--model <model>", "the model that is asked when a request names none")
			.option("--only <model>", "a model that may be asked for; without it any may (repeatable)", each)
			.option("--app <app>", "only this application may use it")
			.addHelpText(
				"after",
				"\nExamples:\n  nexus connector add main --type openai\n  nexus connector add lan --type openai-compatible --endpoint https://models.example/v1 --key-env MODELS_KEY\n  pass show anthropic | nexus connector add claude --type anthropic",
			)
			.action(withDaemon(local, add));
		remoteRows(command.command("list", { isDefault: true }))
			.description("list connectors, with the last four characters of their keys")
			.action(withDaemon(local, listConnectors));
		remote(command.command("test"))
			.description("ask providers for their models; costs nothing there")
			.argument("[id...]", "which ones; without it all")
			.action(withDaemon(local, test));
		withKey(remote(command.command("key")))
			.description("give a connector another key")
			.argument("<id>", "its name")
			.action(withDaemon(local, key));
		remote(command.command("rm"))
			.description("remove connectors and their keys")
			.argument("<id...>", "their names")
			.action(withDaemon(local, remove));
	},
};

interface KeyOptions {
	keyEnv?: string;
	keyFile?: string;
	test: boolean;
}

interface AddConnectorOptions extends KeyOptions {
	type?: string;
	endpoint?: string;
	model?: string;
	only?: string[];
	app?: string;
}

const setting = (name: string, prompt: string, more: Partial<AdapterSetting> = {}): AdapterSetting => ({
	...{ name, prompt, secret: false, required: true },
	...more,
});
const TYPE = setting("type", "provider: openai, anthropic, google, openai-compatible or demo");
const ENDPOINT = setting("endpoint", "address, such as https://models.example/v1");
const KEY = setting("key", "API key (empty: none)", { secret: true, required: false });

async function add(context: CommandContext, id: string, options: AddConnectorOptions) {
	const { connectors } = runtimeOf(context);
	const settings = await addSettings(context.host, options);
	await connectors.createConnector({
		connectorId: id,
		providerType: settings.type!,
		endpoint: settings.endpoint ?? "",
		apiKey: settings.key ?? "",
		defaultModelId: options.model ?? "",
		modelIds: options.only ?? [],
		appId: options.app ?? "",
	});
	if (options.test && !(await works(context, id))) {
		await connectors.deleteConnector({ connectorId: id });
		context.terminal.note("nothing was stored; --no-test stores it all the same");
		return exitCodeOf("unavailable");
	}
	context.terminal.out(`stored ${id}\n`);
}

/** Asks a person for missing settings. A key is never an argument, which others on this machine could read. */
async function addSettings(host: Host, options: AddConnectorOptions): Promise<Record<string, string>> {
	const { type, endpoint } = options;
	const key = await givenKey(host, options);
	const given = Object.entries({ type, endpoint, key });
	const known = Object.fromEntries(given.filter((each): each is [string, string] => each[1] !== undefined));
	if (!host.stdin.isTTY) {
		if (type === undefined) throw new NexusError("invalid", `missing: --type (${TYPE.prompt})`);
		return known;
	}
	const chosen = await ask(host, [TYPE], known, false);
	const needed = chosen.type === "openai-compatible" ? [ENDPOINT, KEY] : [KEY];
	return chosen.type === "demo" ? chosen : ask(host, needed, chosen, false);
}

async function listConnectors(context: CommandContext, { json }: JsonOption) {
	const { connectors } = await runtimeOf(context).connectors.listConnectors({});
	return list(context.terminal, json, connectors, {
		json: (one) => jsonOf(ConnectorSchema, one),
		columns: {
			CONNECTOR: (one) => one.connectorId,
			PROVIDER: (one) => `${one.providerType}${one.enabled ? "" : " (off)"}`,
			KEY: (one) => one.keyHint,
			MODEL: (one) => oneLine(one.defaultModelId || one.modelIds.join(", "), 80),
			APP: (one) => one.appId || "all",
			ADDRESS: (one) => oneLine(one.endpoint, 200),
		},
		optional: ["APP", "MODEL"],
	});
}

async function test(context: CommandContext, ids: readonly string[]) {
	let failed = false;
	for (const id of ids.length > 0 ? ids : await allIds(context)) failed = !(await works(context, id)) || failed;
	return failed ? exitCodeOf("unavailable") : 0;
}

async function allIds(context: CommandContext): Promise<string[]> {
	const { connectors } = await runtimeOf(context).connectors.listConnectors({});
	return connectors.map(({ connectorId }) => connectorId);
}

async function works(context: CommandContext, connectorId: string): Promise<boolean> {
	const { ok, message } = await runtimeOf(context).connectors.testConnector({ connectorId });
	context.terminal.note(oneLine(`${connectorId} ${ok ? "works" : "does not work"}: ${message}`, 700));
	return ok;
}

async function key(context: CommandContext, id: string, options: KeyOptions) {
	const { host, terminal } = context;
	const given = await givenKey(host, options);
	const { key } =
		host.stdin.isTTY && given === undefined ? await ask(host, [{ ...KEY, required: true }], {}, false) : { key: given };
	if (key === undefined)
		throw new NexusError("invalid", "missing: the key; pipe it in, or use --key-env or --key-file");
	await runtimeOf(context).connectors.updateConnector({ connectorId: id, apiKey: key });
	terminal.out(`stored the key of ${id}\n`);
	return !options.test || (await works(context, id)) ? 0 : exitCodeOf("unavailable");
}

const remove = (context: CommandContext, ids: readonly string[]) =>
	forEach(context, ids, async (connectorId) => {
		await runtimeOf(context).connectors.deleteConnector({ connectorId });
		return `removed ${connectorId}`;
	});

/** Reads the value from a variable, a file or a pipe; undefined when the command must prompt for it, or the user gave none. */
async function givenKey(host: Host, { keyEnv, keyFile }: KeyOptions): Promise<string | undefined> {
	if (keyEnv !== undefined) {
		const value = host.env[keyEnv];
		if (value) return value.trim();
		throw new NexusError("invalid", `--key-env: the variable ${keyEnv} is not set`);
	}
	if (keyFile !== undefined) return readText(host, keyFile, "--key-file");
	if (host.stdin.isTTY) return undefined;
	return (await streamText(host.stdin)).trim() || undefined;
}
