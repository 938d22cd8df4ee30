import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { completeConfig } from "../../packages/daemon/src/runtime/config/config.ts";
import { dataPaths } from "../../packages/daemon/src/runtime/data/data-dir.ts";
import { secretKey } from "../../packages/daemon/src/runtime/data/secrets.ts";
import { configuredOf } from "../../packages/daemon/src/runtime/wiring/services.ts";
import { freshFolder } from "./folder.ts";

describe("Z26: the secret key", () => {
	test("it is made when it is first needed, readable by its owner only, and stays", () => {
		const paths = dataPaths(freshFolder());
		const key = secretKey(paths, {});
		expect(key.read()).toBeUndefined();
		expect(existsSync(paths.secret)).toBe(false);
		const made = key.make();
		expect(made).toHaveLength(32);
		expect(statSync(paths.secret).mode & 0o777).toBe(0o600);
		expect(secretKey(paths, {}).read()).toEqual(made);
		expect(secretKey(paths, {}).make()).toEqual(made);
	});

	test("NEXUS_SECRET_KEY comes before the file, in hexadecimal or base64, and makes none", () => {
		const paths = dataPaths(freshFolder());
		const bytes = randomBytes(32);
		for (const text of [
			bytes.toString("hex"),
			bytes.toString("base64"),
			bytes.toString("base64url"),
			` ${bytes.toString("hex")}\n`,
		])
			expect(secretKey(paths, { NEXUS_SECRET_KEY: text }).make()).toEqual(bytes);
		expect(existsSync(paths.secret)).toBe(false);
	});

	test.each(["short", "x".repeat(64), "0".repeat(63), "a secret with spaces that is long enough, is it not"])(
		"%j is refused with what to do, and not repeated",
		(text) => {
			const paths = dataPaths(freshFolder());
			const expected = expect.objectContaining({
				code: "precondition",
				reason: "AI_CONNECTOR_CREDENTIAL_MISSING",
				message: expect.stringMatching(/NEXUS_SECRET_KEY is not 32 bytes.*openssl rand -hex 32/),
			});
			expect(() => secretKey(paths, { NEXUS_SECRET_KEY: text }).read()).toThrow(expected);
			writeFileSync(paths.secret, text);
			expect(() => secretKey(paths, {}).make()).toThrow(
				expect.objectContaining({ message: expect.not.stringContaining(text) }),
			);
			// It may be the only copy.
			expect(readFileSync(paths.secret, "utf8")).toBe(text);
		},
	);

	test.skipIf(process.getuid?.() === 0)("a file that cannot be read is said to be one", () => {
		const paths = dataPaths(freshFolder());
		secretKey(paths, {}).make();
		chmodSync(paths.secret, 0);
		expect(() => secretKey(paths, {}).read()).toThrow("cannot be read");
	});
});

describe("the connector `default`", () => {
	const config = completeConfig({
		pi: { baseUrl: "http://127.0.0.1:11434/v1", model: "llama" },
		reasonAct: { provider: "scripted" },
	});
	const engine = (name: string, scripted?: boolean) => ({ name, async *run() {}, scripted: scripted || undefined });

	test("is the model that the engine asks, with its key of the environment", () => {
		expect(configuredOf(engine("pi"), config, {})).toEqual({
			model: expect.objectContaining({
				provider: "openai-compatible",
				model: "llama",
				baseUrl: "http://127.0.0.1:11434/v1",
			}),
		});
		expect(configuredOf(engine("pi-coding-agent"), completeConfig({}), { ANTHROPIC_API_KEY: "k" })).toEqual({
			model: expect.objectContaining({ provider: "anthropic", apiKey: "k" }),
		});
	});

	test("is the engine where it asks no model, or several", () => {
		for (const one of [engine("demo", true), engine("mine"), engine("reason-act", true)])
			expect(configuredOf(one, config, {})).toEqual({ engine: one });
		const several = engine("reason-act");
		expect(configuredOf(several, completeConfig({}), {})).toEqual({ engine: several });
	});
});
