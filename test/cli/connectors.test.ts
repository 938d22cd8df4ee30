/** Connectors from the command line: a key goes in by a pipe, a variable, a file or the keyboard, is tested, and is never shown. */

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fakeProvider, refuse } from "../services/connectors/fake-provider.ts";
import { KEY } from "../services/connectors/rig.ts";
import { until } from "../until.ts";
import { daemonWith, jsonLines, type RunOptions, run } from "./in-process.ts";

async function house(config = "connectors: { allowLoopback: true }") {
	const { cwd, data, start } = await daemonWith(config);
	const fake = await fakeProvider();
	return {
		...{ cwd, data, fake, endpoint: `${fake.url}/v1` },
		on: (args: string[], options?: RunOptions) => start(["connector", ...args], options).end(),
		typing: (args: string[]) => start(["connector", ...args], { tty: true }),
	};
}

it("Z26: a key from a pipe is tested, kept encrypted in a file of the owner's, and shown by its last four characters", async () => {
	const { on, data, endpoint, fake } = await house();
	const added = await on(["add", "mine", "--type", "openai-compatible", "--endpoint", endpoint], { input: `${KEY}\n` });
	expect([added.code, added.out]).toEqual([0, "stored mine\n"]);
	expect(added.err).toContain("mine works: it answers and has 2 models");
	expect(fake.seen.at(-1)!.headers.authorization).toBe(`Bearer ${KEY}`);
	const listed = await on(["list"]);
	expect(listed.out).toMatch(/^default\tdemo\t.*\nmine\topenai-compatible\t…cdef\t/);
	const json = jsonLines((await on(["list", "--json"])).out);
	expect(json[1]).toMatchObject({ connector_id: "mine", key_hint: "…cdef", endpoint, built_in: false });
	expect(listed.out + JSON.stringify(json) + added.err).not.toContain(KEY);
	const secret = join(data, "secret.key");
	expect(statSync(secret).mode & 0o777).toBe(0o600);
	expect(readFileSync(secret, "utf8")).toMatch(/^[0-9a-f]{64}\n$/);
	expect(readFileSync(join(data, "nexus.db")).includes(KEY)).toBe(false);
});

it("what does not work is not stored, unless that is asked for", async () => {
	const { on, endpoint, fake } = await house();
	fake.on("/v1/models", refuse(401, "wrong key"));
	const args = ["add", "mine", "--type", "openai-compatible", "--endpoint", endpoint, "--key-env", "MY_KEY"];
	const env = { MY_KEY: KEY };
	const refused = await on(args, { env });
	expect(refused.code).toBe(7);
	expect(refused.err).toMatch(/does not work: mine refuses the key[\s\S]*nothing was stored/);
	expect((await on(["list"])).out).not.toContain("mine");
	expect((await on([...args, "--no-test"], { env })).code).toBe(0);
	expect((await on(["test", "mine"])).code).toBe(7);
	fake.on("/v1/models", (_, response) => void response.end('{"data":[]}'));
	expect((await on(["test"])).code).toBe(0);
	expect((await on(["rm", "mine"])).out).toBe("removed mine\n");
	expect((await on(["rm", "mine"])).code).toBe(4);
	expect((await on(["rm", "default"])).code).toBe(5);
});

it("a person is asked for what is missing; the key is not echoed", async () => {
	const { typing, endpoint, on } = await house();
	const adding = typing(["add", "mine"]);
	await until("asks for the type", () => adding.err.includes("provider:"));
	adding.type("openai-compatible\r");
	await until("asks for the address", () => adding.err.includes("address"));
	adding.type(`${endpoint}\r`);
	await until("asks for the key", () => adding.err.includes("API key"));
	adding.type(`${KEY}\r`);
	const { code, err } = await adding.end();
	expect(code).toBe(0);
	expect(err).not.toContain(KEY);
	expect((await on(["list", "--json"])).out).toContain("…cdef");
});

it("another key takes the place of the old one; a key file is read from the folder of the command", async () => {
	const { cwd, on, endpoint, fake } = await house();
	await on(["add", "mine", "--type", "openai-compatible", "--endpoint", endpoint], { input: KEY });
	writeFileSync(join(cwd, "key.txt"), "another-key-5678\n");
	const changed = await on(["key", "mine", "--key-file", "key.txt"]);
	expect([changed.code, changed.out]).toEqual([0, "stored the key of mine\n"]);
	expect(fake.seen.at(-1)!.headers.authorization).toBe("Bearer another-key-5678");
	expect((await on(["key", "mine"])).err).toContain("missing: the key");
});

it("Z27: an address of one's own network is refused, and the error says where to allow it", async () => {
	const { on } = await house("connectors: {}");
	const refused = await on(["add", "mine", "--type", "openai-compatible", "--endpoint", "http://127.0.0.1:1/v1"], {
		input: KEY,
	});
	expect(refused.code).toBe(3);
	expect(refused.err).toContain("`connectors.allowLoopback: true` lets it pass");
	expect((await on(["add", "mine", "--endpoint", "https://x.example"], { input: KEY })).err).toContain("--type");
});

it("nexus doctor says what is wrong with the secret key", async () => {
	const { cwd, data } = await house();
	const secretIn = async (env: RunOptions["env"] = {}) => {
		const { out } = await run(["doctor", "--data", data, "--json"], { cwd, env });
		return jsonLines(out).find(({ check }) => check === "secret");
	};
	expect(await secretIn()).toMatchObject({ result: "ok", detail: expect.stringContaining("none yet") });
	expect(await secretIn({ NEXUS_SECRET_KEY: "short" })).toMatchObject({
		result: "fail",
		detail: expect.stringContaining("not 32 bytes"),
	});
	writeFileSync(join(data, "secret.key"), "0".repeat(64), { mode: 0o644 });
	expect(await secretIn()).toMatchObject({ result: "fail", todo: expect.stringContaining("chmod 600") });
});
