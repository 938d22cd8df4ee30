import { describe, expect, test } from "vitest";
import {
	chooseModel,
	DEFAULT_MODELS,
	detectProvider,
	type PiConfig,
} from "../../packages/daemon/src/engine/pi/config.ts";
import { loadModel } from "../../packages/daemon/src/engine/pi/model.ts";
import { createPiEngine } from "../../packages/daemon/src/engine/pi/pi.ts";
import { createPiCodingAgentEngine } from "../../packages/daemon/src/engine/pi-coding-agent/pi-coding-agent.ts";

const config = (message: RegExp) =>
	expect.objectContaining({ code: "config", message: expect.stringMatching(message) });

describe("detectProvider", () => {
	test.each([
		[{}, undefined],
		[{ OPENAI_API_KEY: "  " }, undefined],
		[{ OPENAI_API_KEY: "k" }, { provider: "openai", model: DEFAULT_MODELS.openai, apiKeyEnv: "OPENAI_API_KEY" }],
		[
			{ ANTHROPIC_API_KEY: "k" },
			{ provider: "anthropic", model: DEFAULT_MODELS.anthropic, apiKeyEnv: "ANTHROPIC_API_KEY" },
		],
		[{ GEMINI_API_KEY: "k" }, { provider: "google", model: DEFAULT_MODELS.google, apiKeyEnv: "GEMINI_API_KEY" }],
		[{ GOOGLE_API_KEY: "k" }, { provider: "google", model: DEFAULT_MODELS.google, apiKeyEnv: "GOOGLE_API_KEY" }],
		[{ OPENAI_BASE_URL: "http://127.0.0.1:11434/v1" }, undefined],
		[
			{ OPENAI_BASE_URL: "http://127.0.0.1:11434/v1", OPENAI_MODEL: "qwen" },
			{ provider: "openai", model: "qwen", apiKeyEnv: "OPENAI_API_KEY", baseUrl: "http://127.0.0.1:11434/v1" },
		],
	])("%j", (env, found) => {
		expect(detectProvider(env)).toEqual(found);
	});

	test("every default model is one that pi-ai lists", async () => {
		for (const [provider, model] of Object.entries(DEFAULT_MODELS)) {
			const loaded = await loadModel({ provider, model, apiKey: "k", keySource: "K" }, "off");
			expect(loaded.model).toMatchObject({ id: model, provider });
		}
	});
});

describe("chooseModel", () => {
	test.each<[string, PiConfig, Record<string, string>, RegExp]>([
		["nothing set", {}, {}, /OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY/],
		["a key is missing", { provider: "google" }, {}, /needs a key\. Set GEMINI_API_KEY or GOOGLE_API_KEY/],
		["the key of another provider", { provider: "anthropic" }, { OPENAI_API_KEY: "k" }, /Set ANTHROPIC_API_KEY/],
		["unknown provider", { provider: "acme" }, { OPENAI_API_KEY: "k" }, /unknown provider "acme".*pi\.baseUrl/],
		[
			"named variable unset",
			{ provider: "openai", apiKeyEnv: "MY_KEY" },
			{ OPENAI_API_KEY: "k" },
			/names MY_KEY, which is not set/,
		],
		[
			"local server without model",
			{ baseUrl: "http://127.0.0.1:1/v1" },
			{},
			/pi\.model.*http:\/\/127\.0\.0\.1:1\/v1\/models/,
		],
		["not an address", { baseUrl: "localhost:11434", model: "m" }, {}, /not an http or https address/],
	])("%s is a config error that says what to set", (_name, choice, env, message) => {
		expect(() => chooseModel(choice, env)).toThrow(config(message));
	});

	test("an endpoint of another name never gets OPENAI_API_KEY", () => {
		const env = { OPENAI_API_KEY: "secret", OTHER: "other" };
		const named = { provider: "ollama", baseUrl: "http://10.0.0.1:11434/v1/", model: "qwen" };
		expect(chooseModel(named, env)).toMatchObject({ apiKey: "none", baseUrl: "http://10.0.0.1:11434/v1" });
		expect(chooseModel({ baseUrl: "http://10.0.0.1/v1", model: "qwen" }, env).apiKey).toBe("none");
		expect(chooseModel({ ...named, apiKeyEnv: "OTHER" }, env).apiKey).toBe("other");
	});

	test("OPENAI_BASE_URL moves openai, and openai only", () => {
		const env = { OPENAI_API_KEY: "o", ANTHROPIC_API_KEY: "a", OPENAI_BASE_URL: "http://127.0.0.1:1/v1" };
		expect(chooseModel({}, env)).toMatchObject({ provider: "openai", baseUrl: "http://127.0.0.1:1/v1", apiKey: "o" });
		expect(chooseModel({ provider: "anthropic" }, env)).toEqual({
			provider: "anthropic",
			model: DEFAULT_MODELS.anthropic,
			apiKey: "a",
			keySource: "ANTHROPIC_API_KEY",
		});
	});
});

describe.each([
	["pi", createPiEngine],
	["pi-coding-agent", createPiCodingAgentEngine],
])("%s at creation", (name, create) => {
	test("has its name", async () => {
		expect((await create({}, { ANTHROPIC_API_KEY: "k" })).name).toBe(name);
	});

	test.each<[string, PiConfig, RegExp]>([
		["an unknown model", { model: "gpt-0" }, /openai has no model "gpt-0".*gpt-4o/],
		["an unknown provider", { provider: "acme" }, /unknown provider "acme"/],
		["a files root that is not there", { filesRoot: "/nonexistent/nexus" }, /pi\.filesRoot.*\/nonexistent\/nexus/],
	])("refuses %s", async (_name, choice, message) => {
		await expect(create(choice, { OPENAI_API_KEY: "k" })).rejects.toEqual(config(message));
	});

	test("refuses to start without a key", async () => {
		await expect(create({}, {})).rejects.toEqual(config(/no model is configured/));
	});
});
