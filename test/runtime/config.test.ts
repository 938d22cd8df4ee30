/** The configuration: precedence, and errors. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../packages/daemon/src/runtime/config/config-file.ts";
import { configSchema } from "../../packages/daemon/src/runtime/config/config-schema.ts";
import { loadConfig, requireTokenOnPublicHost } from "../../packages/daemon/src/runtime/runtime.ts";
import { freshFolder } from "./folder.ts";

const mistakes = (text: string): string[] => {
	try {
		parseConfig(text, "nexus.yaml");
	} catch (cause) {
		expect(cause).toMatchObject({ code: "config" });
		return (cause as Error).message.split("\n");
	}
	return [];
};

interface Inner {
	shape?: Record<string, unknown>;
	/** A map by names of the user's choice. */
	valueType?: { unwrap?(): { shape?: Record<string, unknown> } };
}

describe("nexus.yaml", () => {
	it("I11: a few lines that stand for gigabytes are a mistake of the configuration", () => {
		const lines = ["a: &a [x, x, x, x, x, x, x, x]"];
		for (const [at, name] of "bcdefghi".split("").entries())
			lines.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${"abcdefgh"[at]}`).join(", ")}]`);
		const bombs = [lines.join("\n"), `pi: ${"[".repeat(5000)}`, "pi: *nothing"];
		for (const bomb of bombs) {
			expect(() => parseConfig(bomb, "nexus.yaml")).toThrow(
				expect.objectContaining({ code: "config", message: expect.stringMatching(/^nexus\.yaml:/) }),
			);
		}
	});

	it("says file, line, column, path, what is wrong and what is allowed", () => {
		expect(mistakes("host: 127.0.0.1\nport: 70000\n")).toEqual([
			"nexus.yaml:2:7: port: 70000 is not allowed; allowed: a whole number from 0 (any free port) to 65535",
		]);
	});

	it("limits how long pieces of a text may be held back", () => {
		expect(mistakes("edge:\n  flushMsMax: 10000\n")).toEqual([]);
		expect(mistakes("edge:\n  flushMsMax: 10001\n")).toEqual([
			"nexus.yaml:2:15: edge.flushMsMax: 10001 is not allowed; allowed: a whole number of milliseconds up to 10000, or 0 to send every record at once",
		]);
	});

	it("says every mistake, each with its own place", () => {
		const said = mistakes(
			"durability: disk\nretention:\n  ageDaysMax: -1\n  totalBytesMax: lots\nlog:\n  level: loud\n",
		);
		expect(said).toEqual([
			'nexus.yaml:1:13: durability: "disk" is not allowed; allowed: process, power',
			"nexus.yaml:3:15: retention.ageDaysMax: -1 is not allowed; allowed: a number of days above 0",
			'nexus.yaml:4:18: retention.totalBytesMax: "lots" is not allowed; allowed: a whole number of bytes above 0',
			'nexus.yaml:6:10: log.level: "loud" is not allowed; allowed: debug, info, warn, error, silent',
		]);
	});

	it("refuses unknown keys at every depth and guesses what was meant", () => {
		expect(mistakes("prot: 1\nbroker:\n  firstTokenMS: 5\n  zebra: 1\n")).toEqual([
			'nexus.yaml:1:1: prot: unknown key; did you mean "port"?',
			'nexus.yaml:3:3: broker.firstTokenMS: unknown key; did you mean "firstTokenMs"?',
			expect.stringMatching(/^nexus\.yaml:4:3: broker\.zebra: unknown key; allowed: textCharsMax, /),
		]);
	});

	it.each([
		[
			"engine: gpt\n",
			'nexus.yaml:1:9: engine: "gpt" is not allowed; allowed: demo, pi, pi-coding-agent, reason-act, or { module: ./my-agent.ts }',
		],
		[
			"engine:\n  modul: ./a.ts\n",
			"nexus.yaml:2:3: engine: a map is not allowed; allowed: demo, pi, pi-coding-agent, reason-act, or { module: ./my-agent.ts }",
		],
		[
			"pi: fast\n",
			expect.stringMatching(
				/^nexus\.yaml:1:5: pi: "fast" is not allowed; allowed: a map with the keys provider, model, /,
			),
		],
		["pi:\n  baseUrl: ftp://x\n", expect.stringContaining("nexus.yaml:2:12: pi.baseUrl")],
		[
			"- a\n- b\n",
			expect.stringMatching(
				/^nexus\.yaml:1:1: the file: a list is not allowed; allowed: a map with the keys host, port, /,
			),
		],
		[
			"channels:\n  telegram:\n    acl:\n      unknwon: pair\n",
			'nexus.yaml:4:7: channels.telegram.acl.unknwon: unknown key; did you mean "unknown"?',
		],
		[
			"channels:\n  telegram:\n    queue: { mode: fast }\n",
			'nexus.yaml:3:20: channels.telegram.queue.mode: "fast" is not allowed; allowed: interrupt, steer, followup, collect, reject, inject',
		],
		[
			"channels:\n  discord:\n    acl:\n      owner: [123456789012345678901]\n",
			expect.stringContaining("channels.discord.acl.owner"),
		],
		[
			'channels:\n  "my bot": {}\n',
			"nexus.yaml:2:3: channels.my bot: not a name; allowed: letters, digits and . _ : @ + - beginning with a letter or digit, 128 at most",
		],
		[
			"channels:\n  web: { queue: { mode: collect } }\n  telegarm: { acl: { unknown: deny } }\n",
			'nexus.yaml:3:3: channels.telegarm: no adapter of that name; did you mean "telegram"? (your own needs its `command`)',
		],
		["channels: { pigeon: {} }\n", expect.stringMatching(/^nexus\.yaml:1:13: channels\.pigeon: .*bundled: discord, /)],
		["x: 1\n", expect.stringMatching(/^nexus\.yaml:1:1: x: unknown key; allowed: host, /)],
		["port: 1\n---\nport: 2\n", expect.stringMatching(/^nexus\.yaml:2:1: not valid YAML: .*several documents/)],
		["a: [1\n", expect.stringMatching(/^nexus\.yaml:\d+:\d+: not valid YAML: /)],
		["port: 1\nport: 2\n", expect.stringMatching(/^nexus\.yaml:2:1: not valid YAML: /)],
	])("refuses %j", (text, message) => {
		expect(mistakes(text)[0]).toEqual(message);
	});

	it.each([
		['token: "hunter2 x"\n', "nexus.yaml:1:8: token: this value is not allowed"],
		["pi: { apiKeyEnv: sk-hunter2 }\n", "nexus.yaml:1:18: pi.apiKeyEnv: this value is not allowed"],
		[
			"channels: { x: { accounts: { main: { settings: hunter2 } } } }\n",
			"channels.x.accounts.main.settings: this value is not allowed",
		],
	])("never repeats what may be a secret: %j", (text, message) => {
		const said = mistakes(text).join();
		expect(said).toContain(message);
		expect(said).not.toContain("hunter2");
	});

	it("accepts an empty file, comments, and a watchdog that is switched off", () => {
		expect(parseConfig("", "f")).toEqual({});
		expect(parseConfig("# nothing yet\n", "f")).toEqual({});
		expect(parseConfig("broker: { totalMs: .inf }", "f")).toEqual({ broker: { totalMs: Number.POSITIVE_INFINITY } });
	});

	it("takes ids and settings as people write them", () => {
		const text =
			"channels: { x: { command: [y], acl: { owner: [7] }, accounts: { main: { settings: { drafts: true, port: 8 } } } } }";
		expect(parseConfig(text, "f").channels?.x).toEqual({
			command: ["y"],
			acl: { owner: ["7"] },
			accounts: { main: { settings: { drafts: "true", port: "8" } } },
		});
	});

	it("is documented key by key", () => {
		const page = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
		const missing: string[] = [];
		const visit = (shape: Record<string, unknown>) => {
			for (const [key, field] of Object.entries(shape)) {
				if (!page.includes(`\`${key}\``)) missing.push(key);
				const inner = (field as { unwrap?(): Inner }).unwrap?.() ?? (field as Inner);
				const shape = inner.shape ?? inner.valueType?.unwrap?.().shape;
				if (shape) visit(shape);
			}
		};
		visit(configSchema.shape);
		expect(missing).toEqual([]);
	});
});

describe("loadConfig", () => {
	const load = (flags: Parameters<typeof loadConfig>[0], env: Record<string, string>, cwd: string) =>
		loadConfig(flags, { cwd, env });

	it("takes flags before environment before file before defaults, for each setting by itself", async () => {
		const cwd = freshFolder();
		const all = { host: "h", port: "1", data: "d", token: "flag-token-0123456789" };
		expect(await load({}, {}, cwd)).toMatchObject({ host: "127.0.0.1", port: 7777, data: join(cwd, ".nexus") });
		writeFileSync(join(cwd, "nexus.yaml"), "host: file\nport: 3\ndata: file-data\ntoken: file-token-0123456789\n");
		expect(await load({}, {}, cwd)).toMatchObject({
			host: "file",
			port: 3,
			data: join(cwd, "file-data"),
			token: "file-token-0123456789",
		});
		const env = { NEXUS_HOST: "env", NEXUS_PORT: "2", NEXUS_DATA: "env-data", NEXUS_TOKEN: "env-token-0123456789" };
		expect(await load({}, env, cwd)).toMatchObject({
			host: "env",
			port: 2,
			data: join(cwd, "env-data"),
			token: "env-token-0123456789",
		});
		expect(await load(all, env, cwd)).toMatchObject({
			host: "h",
			port: 1,
			data: join(cwd, "d"),
			token: "flag-token-0123456789",
		});
		expect(await load({ port: "0" }, env, cwd)).toMatchObject({ host: "env", port: 0 });
	});

	it("reads the file that --config or NEXUS_CONFIG names, and resolves what it names against its folder", async () => {
		const cwd = freshFolder();
		const other = freshFolder();
		const file = join(other, "mine.yaml");
		writeFileSync(file, "engine: { module: ./agent.ts }\npi: { filesRoot: notes }\ndata: here\n");
		const expected = { base: other, file, data: join(cwd, "here"), pi: { filesRoot: "notes" } };
		expect(await load({ config: file }, {}, cwd)).toMatchObject(expected);
		expect(await load({}, { NEXUS_CONFIG: file }, cwd)).toMatchObject(expected);
	});

	it("calls the file in a mistake as it is seen from here", async () => {
		const cwd = freshFolder();
		const other = join(freshFolder(), "mine.yaml");
		for (const file of [join(cwd, "nexus.yaml"), other]) writeFileSync(file, "port: x\n");
		await expect(load({}, {}, cwd)).rejects.toThrow(/^nexus\.yaml:1:7: port: /);
		await expect(load({ config: other }, {}, cwd)).rejects.toThrow(`${other}:1:7: port: `);
	});

	it("refuses a named file that is not there", async () => {
		await expect(load({ config: "nope.yaml" }, {}, freshFolder())).rejects.toMatchObject({
			code: "config",
			message: expect.stringContaining("nope.yaml: cannot be read"),
		});
	});

	it.each(["x", "-1", "65536", "1.5"])("refuses --port %j", async (port) => {
		await expect(load({ port }, {}, freshFolder())).rejects.toMatchObject({
			code: "config",
			message: `--port: ${JSON.stringify(port)} is not a port; allowed: 0 (any free port) to 65535`,
		});
	});

	it.each(["host", "port", "data", "token", "config"])("refuses an empty --%s", async (flag) => {
		await expect(load({ [flag]: "" }, {}, freshFolder())).rejects.toMatchObject({
			code: "config",
			message: `--${flag} is empty: give it a value, or leave it out`,
		});
	});

	it("takes an IPv6 address with the brackets of a URL", async () => {
		const config = await load({ host: "[::1]" }, {}, freshFolder());
		expect(config.host).toBe("::1");
		expect(() => requireTokenOnPublicHost(config)).not.toThrow();
	});

	it("refuses a token that no header can carry, without repeating it", async () => {
		await expect(load({}, { NEXUS_TOKEN: "hunter 2" }, freshFolder())).rejects.toMatchObject({
			message: "NEXUS_TOKEN: a token is made of visible ASCII characters without spaces",
		});
	});
});

describe("an address that other machines reach", () => {
	it.each(["127.0.0.1", "127.9.9.9", "localhost", "::1"])("%s needs no configured token", (host) => {
		expect(() => requireTokenOnPublicHost({ host })).not.toThrow();
		expect(() => requireTokenOnPublicHost({ host, token: "x" })).not.toThrow();
	});

	it.each(["0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.example.org"])("%s needs one", (host) => {
		expect(() => requireTokenOnPublicHost({ host })).toThrow(/set a token with --token, NEXUS_TOKEN or `token:`/);
		expect(() => requireTokenOnPublicHost({ host, token: "0123456789abcdef" })).not.toThrow();
		for (const token of ["x", "0123456789abcde"])
			expect(() => requireTokenOnPublicHost({ host, token })).toThrow(/use 16 characters or more/);
	});
});
