import { describe, expect, test } from "vitest";
import type { AuditEntry } from "../../../packages/daemon/src/services/audit/port.ts";
import { defaultModelOf } from "../../../packages/daemon/src/services/connectors/connectors.ts";
import { serving } from "../../serving.ts";
import { rejectsWith } from "../parts.ts";
import { fakeProvider } from "./fake-provider.ts";
import { all, app, ask, KEY, OWNER, open, rig, signal } from "./rig.ts";

const compatible = { id: "c", providerType: "openai-compatible", endpoint: "https://models.example/v1", apiKey: KEY };

describe("connectors: who sees which", () => {
	test("`default` is first and everybody's; one of an application is there for it and the owner only", async () => {
		const { connectors } = rig();
		await connectors.create({ ...compatible, id: "shop-only", appId: "shop" }, OWNER);
		await connectors.create({ ...compatible, id: "all" }, OWNER);
		const ids = async (who: typeof OWNER) => (await connectors.list(who)).map(({ id }) => id);
		expect(await ids(OWNER)).toEqual(["default", "all", "shop-only"]);
		expect(await ids(app("shop"))).toEqual(["default", "all", "shop-only"]);
		expect(await ids(app("other"))).toEqual(["default", "all"]);
		expect(await connectors.find("shop-only", app("other"))).toBeUndefined();
		expect(await connectors.find("shop-only", app("shop"))).toMatchObject({ id: "shop-only", appId: "shop" });
	});

	test("only the owner makes, changes, removes and tests them", async () => {
		const { connectors } = rig();
		await connectors.create(compatible, OWNER);
		const forbidden = { code: "forbidden" };
		await expect(connectors.create({ ...compatible, id: "d" }, app("a"))).rejects.toMatchObject(forbidden);
		await expect(connectors.update("c", { enabled: false }, app("a"))).rejects.toMatchObject(forbidden);
		await expect(connectors.remove("c", app("a"))).rejects.toMatchObject(forbidden);
		await expect(connectors.test("c", app("a"))).rejects.toMatchObject(forbidden);
	});
});

describe("connectors: Z26 keys at rest", () => {
	test("a key goes in and never comes out: lists show its last four characters, the store has it encrypted", async () => {
		const { connectors, store, secret } = rig();
		const made = await connectors.create(compatible, OWNER);
		expect(made).toMatchObject({ keyHint: "…cdef", enabled: true, builtIn: false });
		const shown = JSON.stringify([made, await connectors.list(OWNER), await connectors.find("c", OWNER)]);
		expect(shown).not.toContain(KEY);
		expect(shown).not.toContain("sealed");
		const row = JSON.stringify(store.file.db.prepare("SELECT * FROM connector").all());
		expect(row).not.toContain(KEY);
		expect(row).not.toContain(Buffer.from(KEY).toString("base64url").slice(0, 20));
		expect(secret.value).toHaveLength(32);
		const short = await connectors.create({ ...compatible, id: "short", apiKey: "abcdefgh" }, OWNER);
		expect(short.keyHint).toBe("…");
	});

	test("the same key is stored differently each time", async () => {
		const { connectors, store } = rig();
		await connectors.create(compatible, OWNER);
		await connectors.create({ ...compatible, id: "d" }, OWNER);
		const [one, two] = await store.rows.connectors.list();
		expect(one!.sealedKey).not.toBe(two!.sealedKey);
	});

	const unusable = { code: "precondition", reason: "AI_CONNECTOR_CREDENTIAL_MISSING" };

	test("without the secret key, or with another one, it says what to do and nothing crashes", async () => {
		const { connectors, secret } = rig();
		await connectors.create(compatible, OWNER);
		const right = secret.value!;
		secret.value = undefined;
		await expect(open(connectors, "c")).rejects.toMatchObject({
			...unusable,
			message: expect.stringContaining("is gone"),
		});
		secret.value = Buffer.alloc(32, 1);
		await expect(open(connectors, "c")).rejects.toMatchObject({
			...unusable,
			message: expect.stringMatching(/another secret key.*NEXUS_SECRET_KEY.*nexus connector key c/),
		});
		expect(await connectors.test("c", OWNER)).toMatchObject({ ok: false, reason: "AI_CONNECTOR_CREDENTIAL_MISSING" });
		expect(await connectors.list(OWNER)).toHaveLength(2);
		secret.value = right;
		expect((await open(connectors, "c")).demo).toBe(false);
	});

	test.each([
		["id", "UPDATE connector SET id = 'c2'", "c2"],
		["owner", "UPDATE connector SET app_id = 'thief'", "c"],
		["endpoint", "UPDATE connector SET endpoint = 'https://thief.example/v1'", "c"],
		["provider", "UPDATE connector SET provider_type = 'openai'", "c"],
	])("a row whose %s was changed in the file cannot use the key", async (_, sql, id) => {
		const { connectors, store } = rig();
		await connectors.create(compatible, OWNER);
		store.file.db.exec(sql);
		await expect(open(connectors, id)).rejects.toMatchObject({
			...unusable,
			message: expect.stringContaining("damaged"),
		});
	});

	test("another endpoint needs the key again; everything else keeps it", async () => {
		const { connectors } = rig();
		await connectors.create(compatible, OWNER);
		const endpoint = "https://elsewhere.example/v1";
		await rejectsWith(connectors.update("c", { endpoint }, OWNER), "invalid");
		expect(await connectors.update("c", { endpoint: `${compatible.endpoint}/` }, OWNER)).toMatchObject({
			keyHint: "…cdef",
		});
		expect(await connectors.update("c", { endpoint, apiKey: "another-key-9876" }, OWNER)).toMatchObject({
			endpoint,
			keyHint: "…9876",
		});
		await connectors.update("c", { defaultModel: "m", models: ["m"] }, OWNER);
		expect((await open(connectors, "c")).demo).toBe(false);
	});

	test("one that needs a key and has none, is switched off or gone cannot be opened", async () => {
		const { connectors } = rig();
		const made = await connectors.create({ id: "o", providerType: "openai" }, OWNER);
		await expect(connectors.open(made)).rejects.toMatchObject(unusable);
		await connectors.update("o", { apiKey: KEY }, OWNER);
		await connectors.open(made);
		await connectors.update("o", { enabled: false }, OWNER);
		await rejectsWith(connectors.open(made), "precondition", "AI_CONNECTOR_DISABLED");
		await connectors.remove("o", OWNER);
		await rejectsWith(connectors.open(made), "not_found", "AI_CONNECTOR_NOT_FOUND");
	});
});

describe("connectors: Z27, R4-32: addresses", () => {
	test.each([
		"http://models.example/v1",
		"https://10.0.0.1/v1",
		"https://169.254.169.254/",
		"https://[fd00::1]/",
		"ftp://models.example/",
		"https://user:password@models.example/",
	])("%s is refused when it is stored", async (endpoint) => {
		const { connectors } = rig({ rules: {} });
		const refused = { code: "forbidden", reason: "AI_ENDPOINT_FORBIDDEN" };
		await expect(connectors.create({ ...compatible, endpoint }, OWNER)).rejects.toMatchObject(refused);
		await connectors.create(compatible, OWNER);
		await expect(connectors.update("c", { endpoint, apiKey: KEY }, OWNER)).rejects.toMatchObject(refused);
		await expect(connectors.openInline({ providerType: "openai", endpoint, apiKey: KEY })).rejects.toMatchObject(
			refused,
		);
	});

	test("a check tells what is forbidden from what cannot be resolved", async () => {
		const addresses: Record<string, string[]> = {
			"good.example": ["8.8.8.8"],
			"bad.example": ["8.8.8.8", "192.168.0.1"],
		};
		const resolve = async (name: string) => addresses[name] ?? Promise.reject(new Error("ENOTFOUND"));
		const { connectors } = rig({ rules: {}, resolve });
		await connectors.checkEndpoint("https://good.example/v1");
		await rejectsWith(connectors.checkEndpoint("https://bad.example/v1"), "forbidden", "AI_ENDPOINT_FORBIDDEN");
		await rejectsWith(connectors.checkEndpoint("https://gone.example/"), "unavailable", "AI_ENDPOINT_UNRESOLVED");
		await rejectsWith(connectors.checkEndpoint("nonsense"), "invalid");
	});

	test("what the owner allows connectors is closed to an application's own addresses, unless the owner lists it", async () => {
		const local = await serving((_, response) => response.writeHead(500).end("a secret of this machine"));
		const rules = { allowLoopback: true, allow: ["10.0.0.0/8"] };
		const { connectors } = rig({ rules, inlineApps: ["lab"], resolve: async () => ["127.0.0.1"] });
		const refused = { code: "forbidden", reason: "AI_ENDPOINT_FORBIDDEN" };
		const inline = (endpoint: string, app?: string) =>
			connectors.openInline({ providerType: "openai", endpoint, apiKey: KEY, app });
		for (const endpoint of [local, "http://10.1.2.3/v1"]) {
			await expect(connectors.checkEndpoint(endpoint, "shop")).rejects.toMatchObject(refused);
			await expect(inline(endpoint, "shop")).rejects.toMatchObject(refused);
			for (const app of [undefined, "lab"]) await connectors.checkEndpoint(endpoint, app);
		}
		await expect(connectors.checkEndpoint("https://local.example/", "shop")).rejects.toThrow(/connectors\.inlineApps/);
		const named = await inline("https://local.example/v1", "shop");
		await expect(all(named.text(ask("hi"), signal()))).rejects.toMatchObject(refused);
		const lab = await inline(local, "lab");
		await expect(all(lab.text(ask("hi"), signal()))).rejects.toThrow(/a secret of this machine/);
	});

	test("a name that has turned to this network is refused at the dial, whatever was checked before", async () => {
		let address = "8.8.8.8";
		const { connectors } = rig({ rules: {}, resolve: async () => [address] });
		await connectors.create(compatible, OWNER);
		await connectors.checkEndpoint(compatible.endpoint);
		const provider = await open(connectors, "c");
		address = "10.0.0.1";
		await rejectsWith(all(provider.text(ask("hi"), signal())), "forbidden", "AI_ENDPOINT_FORBIDDEN");
		await rejectsWith(provider.embed({ model: "e", inputs: ["a"] }, signal()), "forbidden");
	});

	test("the address that is used is the connector's own or its provider's", () => {
		const { connectors } = rig();
		expect(connectors.endpointOf({ providerType: "openai" })).toBe("https://api.openai.com/v1");
		expect(connectors.endpointOf({ providerType: "openai", endpoint: "https://x.example" })).toBe("https://x.example");
		for (const providerType of ["openai-compatible", "demo", "configured", "constructor"])
			expect(connectors.endpointOf({ providerType })).toBeUndefined();
	});

	test("a key of one request is used and kept nowhere", async () => {
		const fake = await fakeProvider();
		const { connectors, store } = rig();
		const provider = await connectors.openInline({
			providerType: "openai",
			endpoint: `${fake.url}/v1`,
			apiKey: "inline-key-1",
		});
		await provider.embed({ model: "e", inputs: ["a"] }, signal());
		expect(fake.seen.at(-1)!.headers.authorization).toBe("Bearer inline-key-1");
		expect(await store.rows.connectors.list()).toEqual([]);
		for (const [providerType, apiKey] of [
			["nobody", "k"],
			["openai-compatible", "k"],
			["openai", "a b"],
			["demo", "k"],
		] as const)
			await rejectsWith(connectors.openInline({ providerType, apiKey }), "invalid");
	});
});

describe("connectors: what they are made of", () => {
	test.each([
		[{ id: "no spaces" }, "id"],
		[{ id: "" }, "id"],
		[{ providerType: "constructor" }, "provider type"],
		[{ endpoint: "nonsense" }, "not an address"],
		[{ endpoint: "https://a.example/?key=1" }, "leave that out"],
		[{ endpoint: "" }, "needs an endpoint"],
		[{ apiKey: "line\nfeed" }, "visible ASCII"],
		[{ apiKey: "x".repeat(4097) }, "visible ASCII"],
		[{ models: ["a"], defaultModel: "b" }, "not among"],
		[{ models: [""] }, "characters"],
		[{ providerType: "anthropic", kinds: ["speech"] }, "does not offer speech"],
		[{ providerType: "demo", endpoint: "", apiKey: "k" }, "takes no key"],
	] as const)("%j is refused: %s", async (fields, words) => {
		const { connectors } = rig();
		const given = { ...compatible, ...fields } as typeof compatible;
		await expect(connectors.create(given, OWNER)).rejects.toMatchObject({
			code: "invalid",
			message: expect.stringContaining(words),
		});
	});

	test("`default` can be neither taken, changed nor removed", async () => {
		const { connectors } = rig();
		await rejectsWith(connectors.create({ ...compatible, id: "default" }, OWNER), "conflict");
		await rejectsWith(connectors.update("default", { enabled: false }, OWNER), "precondition");
		await rejectsWith(connectors.remove("default", OWNER), "precondition");
		await connectors.create(compatible, OWNER);
		await rejectsWith(connectors.create(compatible, OWNER), "conflict");
		await rejectsWith(connectors.remove("nobody", OWNER), "not_found");
	});

	test("every change commits with its line in the audit log, without the key", async () => {
		const entries: AuditEntry[] = [];
		const { connectors } = rig({
			audit: (entry) => {
				entries.push(entry);
				return { table: "connectors", op: "remove", args: ["nobody"] };
			},
		});
		// The line cannot be written, so nothing is.
		await expect(connectors.create(compatible, OWNER)).rejects.toThrow();
		expect(await connectors.list(OWNER)).toHaveLength(1);
		expect(entries).toMatchObject([
			{ domain: "connectors", operation: "created", caller: "127.0.0.1", payload: { connector_id: "c" } },
		]);
		expect(JSON.stringify(entries)).not.toContain(KEY);
	});

	test("without a name, the model is the connector's own for what it is there for, else its provider's usual one", () => {
		const openai = { providerType: "openai", kinds: ["text", "speech"] as const, defaultModel: "my-model" };
		expect(defaultModelOf(openai, "text")).toBe("my-model");
		expect(defaultModelOf(openai, "speech")).toBe("gpt-4o-mini-tts");
		expect(defaultModelOf({ ...openai, kinds: ["speech"], defaultModel: "voice" }, "speech")).toBe("voice");
		expect(defaultModelOf({ ...openai, providerType: "openai-compatible" }, "speech")).toBe("my-model");
		expect(defaultModelOf({ providerType: "anthropic" }, "text")).toBe("claude-sonnet-4-6");
		expect(defaultModelOf({ providerType: "openai-compatible" }, "text")).toBeUndefined();
	});
});

describe("connectors: the demo, offline", () => {
	test("text is the demo engine's words, and the directive works", async () => {
		const { connectors } = rig();
		const demo = await open(connectors, "default");
		expect(demo.demo).toBe(true);
		const events = await all(demo.text(ask("/demo tokens=5 rate=0", "demo"), signal()));
		expect(events.filter(({ type }) => type === "text")).toHaveLength(5);
		expect(events.at(-1)).toMatchObject({ type: "usage", output: 5 });
	});

	test("speech is a whole WAV file in pieces, which says what it is", async () => {
		const { connectors } = rig();
		const demo = await open(connectors, "default");
		const { mimeType, audio } = await demo.speak({ model: "demo", text: "three short words" }, signal());
		const parts = await all(audio);
		const wav = Buffer.concat(parts);
		expect([mimeType, parts.length]).toEqual(["audio/wav", 4]);
		expect(wav.readUInt32LE(4)).toBe(wav.length - 8);
		expect(wav.toString("latin1")).toContain("Nexus demo voice");
		const data = wav.indexOf("data", 12, "latin1");
		expect(wav.readUInt32LE(data + 4)).toBe(wav.length - data - 8);
		const aborted = AbortSignal.abort(new Error("stop"));
		await expect(all((await demo.speak({ model: "demo", text: "a b" }, aborted)).audio)).rejects.toThrow("stop");
	});

	test("embeddings are the same for the same text, and near for texts that share words", async () => {
		const { connectors } = rig();
		const demo = await open(connectors, "default");
		const inputs = ["the red boat", "the red boat", "a red boat sails", "quarterly tax return", ""];
		const { vectors } = await demo.embed({ model: "demo", inputs }, signal());
		const near = (a: number, b: number) => vectors[a]!.reduce((sum, value, n) => sum + value * vectors[b]![n]!, 0);
		expect(vectors[0]).toEqual(vectors[1]);
		expect(near(0, 2)).toBeGreaterThan(near(0, 3) + 0.2);
		for (const vector of vectors) expect(Math.hypot(...vector)).toBeCloseTo(1);
	});

	test("pictures and transcripts carry their label; a picture's text cannot become markup", async () => {
		const { connectors } = rig();
		await connectors.create({ id: "d", providerType: "demo" }, OWNER);
		const demo = await open(connectors, "d");
		const [one, two] = await demo.image({ model: "demo", prompt: "<script>&", count: 2 }, signal());
		const svg = Buffer.from(one!.data).toString();
		expect(svg).toContain("Demo picture");
		expect(svg).not.toContain("<script>");
		expect(one).not.toEqual(two);
		const audio = { mimeType: "audio/wav", data: Buffer.alloc(10) };
		expect((await demo.transcribe({ model: "demo", audio }, signal())).text).toContain("Demo transcription");
	});

	test("`default` is the configured model where there is one, for text only", async () => {
		const fake = await fakeProvider();
		const model = { provider: "openai-compatible", model: "m1", baseUrl: `${fake.url}/v1`, apiKey: "of-the-operator" };
		// Its address is the operator's: the guard would refuse it.
		const { connectors } = rig({ configured: { model }, rules: {} });
		expect(await connectors.find("default", app("a"))).toMatchObject({
			providerType: "configured",
			defaultModel: "m1",
			models: ["m1"],
			kinds: ["text"],
			builtIn: true,
		});
		const provider = await open(connectors, "default");
		expect(provider.demo).toBe(false);
		expect((await all(provider.text(ask("hi"), signal()))).filter(({ type }) => type === "text")).toHaveLength(3);
		expect(fake.seen.at(-1)!.headers.authorization).toBe("Bearer of-the-operator");
		await expect(provider.speak({ model: "m1", text: "hi" }, signal())).rejects.toMatchObject({
			reason: "AI_SCENARIO_UNSUPPORTED",
		});
		expect(await connectors.test("default", OWNER)).toMatchObject({ ok: true, models: ["m1", "m2"] });
	});

	test("`default` is the engine itself where no model can be asked, without tools", async () => {
		const seen: unknown[] = [];
		const engine = {
			name: "mine",
			async *run(request: { allowedTools?: readonly string[]; messages: readonly { text: string }[] }) {
				seen.push(request.allowedTools);
				yield [
					{ type: "reasoning" as const, delta: "hm" },
					{ type: "text" as const, delta: request.messages.map(({ text }) => text).join("|") },
				];
			},
		};
		const { connectors } = rig({ configured: { engine } });
		const provider = await open(connectors, "default");
		expect(await all(provider.text({ ...ask("hi"), system: "be kind" }, signal()))).toEqual([
			{ type: "alive" },
			{ type: "text", delta: "be kind|hi" },
		]);
		expect(seen).toEqual([[]]);
		await rejectsWith(provider.embed({ model: "m", inputs: ["a"] }, signal()), "precondition");
	});
});

describe("connectors: the connection test", () => {
	test("it asks for the models and says what it found", async () => {
		const fake = await fakeProvider();
		const { connectors } = rig();
		await connectors.create({ ...compatible, endpoint: `${fake.url}/v1` }, OWNER);
		expect(await connectors.test("c", OWNER)).toEqual({
			ok: true,
			message: "it answers and has 2 models",
			models: ["m1", "m2"],
		});
		fake.on("/v1/models", (_, response) => void response.writeHead(404).end());
		expect(await connectors.test("c", OWNER)).toMatchObject({ ok: true, message: expect.stringContaining("no list") });
		fake.on("/v1/models", (_, response) => void response.writeHead(401).end("no"));
		expect(await connectors.test("c", OWNER)).toMatchObject({ ok: false, reason: "AI_PROVIDER_FAILED" });
		expect(fake.seen.map(({ method, path }) => `${method} ${path}`)).toEqual(Array(3).fill("GET /v1/models"));
		await rejectsWith(connectors.test("nobody", OWNER), "not_found");
		expect(await connectors.test("default", OWNER)).toMatchObject({ ok: true, models: ["demo"] });
	});
});
