/** The router with adapters that others wrote: the kit's, and one in Python, each killed while it writes. */

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { queueOf, rulesOf } from "../../../packages/daemon/src/nex/inbox/config.ts";
import { callsIn, visibleIn } from "../../adapter/kit/file-platform.ts";
import { createRig, FAST, type Rig, rigForTest, strike, until } from "./rig.ts";

function temporary(): string {
	const folder = mkdtempSync(join(tmpdir(), "nexus-platform-"));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	return folder;
}

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const bare = (text: string) => text.replaceAll(/\s+/g, "");
const words = (count: number) =>
	Array.from({ length: count }, (_, n) => `word ${n} of the answer.${n % 9 === 8 ? "\n\n" : " "}`).join("");

/** Says a text in small pieces and kills the adapter's process whenever it has done something with one, by what its platform `saw`; without that, whenever it runs. */
async function deliverUnderFire(of: Rig, source: string, kills: number, saw?: () => number) {
	const { run, id } = await of.begin();
	const step = Math.ceil(source.length / (kills + 1));
	let struck: number | undefined;
	for (let begin = 0; begin < source.length; begin += step) {
		const piece = source.slice(begin, begin + step);
		const before = saw?.();
		for (let n = 0; n < piece.length; n += 11) run.text(piece.slice(n, n + 11));
		if (begin + step >= source.length) break;
		const pid = () => of.outbound.accounts()[0]!.processes.stream?.pid;
		const isNext = () => pid() !== undefined && pid() !== struck;
		await until(() => isNext() && (before === undefined || saw!() > before), `the adapter is at work ${begin}`);
		struck = pid()!;
		strike(struck);
	}
	await run.end();
	return of.outbound.settled(id);
}

describe("an adapter that is not there", () => {
	const missing = (limits = FAST) => {
		const path = join(temporary(), "late.mjs");
		const command = [process.execPath, "--conditions=nexus-source", path, "full"];
		return { path, of: rigForTest((channel) => ({ full: channel("full", {}, { command }) }), { limits }) };
	};
	it("I7: is asked again until it is, and the answer goes out then", async () => {
		const { path, of } = missing();
		const { id } = await of.deliver({ text: "hello" });
		await until(() => of.outbound.accounts()[0]!.infoError !== undefined, "it could not be asked");
		writeFileSync(path, `await import(${JSON.stringify(at("./adapters/file-platform.mjs"))});`);
		expect(await of.outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(of.visible("c1")).toEqual(["hello"]);
	});

	it("is given up in the end, and the delivery says why", async () => {
		const { of } = missing({ ...FAST, giveUpMs: 1 });
		expect(await of.send({ text: "hello" })).toMatchObject({ state: "failed", error: expect.stringContaining("info") });
	});
});

describe("adapters of others", () => {
	it.each(["edit", "append", "preview", "whole"])(
		"I7: the kit, style %s, killed again and again",
		{ timeout: 300_000 },
		async (style) => {
			const folder = temporary();
			const rig = rigForTest(() => ({
				folder: {
					command: [process.execPath, "--conditions=nexus-source", at("../../adapter/kit/file-platform.ts")],
					accounts: { main: { settings: { folder, style } } },
				},
			}));
			const source = words(60);
			const saw = style === "whole" ? undefined : () => callsIn(folder).length;
			const done = await deliverUnderFire(rig, source, 6, saw);
			expect(done).toMatchObject({ state: "complete", cursor: source.length });
			expect(bare(visibleIn(folder, "c1").join(""))).toBe(bare(source));
		},
	);

	const python = spawnSync("python3", ["--version"]).status === 0;
	it("I7: the example in Python, killed again and again", { timeout: 300_000, skip: !python }, async () => {
		const file = join(temporary(), "terminal.txt");
		const rig = rigForTest(() => ({
			terminal: {
				command: ["python3", at("../../../examples/adapter.py")],
				accounts: { main: { settings: { file } } },
			},
		}));
		const source = words(60);
		const done = await deliverUnderFire(rig, source, 6, () => (existsSync(file) ? statSync(file).size : 0));
		expect(done).toMatchObject({ state: "complete" });
		await until(() => existsSync(file), "it wrote");
		const rows = readFileSync(file, "utf8")
			.split("\n")
			.filter((row) => /^[0-9a-f]+\| /.test(row));
		expect(bare(rows.map((row) => row.slice(row.indexOf("|") + 1)).join(""))).toBe(bare(source));
	});
});

const NAMES = ["__proto__", "constructor", "toString", "hasOwnProperty"];

it("a channel or account called like a part of every object is not there", async () => {
	const { outbound } = createRig("full");
	const request = { method: "POST", query: "", headers: {}, body: "" };
	for (const name of NAMES) {
		for (const [channel, account] of [
			[name, "main"],
			["full", name],
			[name, name],
		] as const) {
			const missing = { code: "not_found" };
			await expect(outbound.webhook(channel, account, request)).rejects.toMatchObject(missing);
			await expect(outbound.health(channel, account)).rejects.toMatchObject(missing);
			const deliver = { account: { channel, id: account }, target: { to: "1" }, text: "hi" };
			await expect(outbound.deliver(deliver)).rejects.toMatchObject(missing);
		}
	}
});

it("nor are they sessions or channels with rules of their own", () => {
	const config = { channels: { full: { accounts: { main: {} } } }, sessions: {} };
	for (const name of NAMES) {
		expect(rulesOf(config, name, name)).toEqual(rulesOf(config, "other", "other"));
		const queue = (of: string) => queueOf(config, { channel: of, account: of, session: of }, 9);
		expect(queue(name)).toEqual(queue("other"));
	}
});
