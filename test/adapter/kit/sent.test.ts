import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createRecorder, openNotes } from "../../../packages/adapter/src/memory/notes.ts";
import { type KeptMessage, SentLog } from "../../../packages/adapter/src/memory/sent.ts";
import { openState, writeState } from "../../../packages/adapter/src/memory/state.ts";
import { PlatformError } from "../../../packages/adapter/src/platform/platform-error.ts";
import type { KeepLine } from "../../../packages/adapter/src/port.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";

let folder = "";
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "nexus-sent-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = () => join(folder, "sent");
/** As another process of the account would. */
const open = () => new SentLog(openNotes(file()), systemClock);
const under = new Promise<never>(() => {});

describe("I7: what a crash leaves in doubt", () => {
	test("a message that was never begun has certainly not left", () => {
		expect(open().mayHaveLeft("a")).toBe(false);
	});

	test("a call under way when the process dies may have left", () => {
		void open().create("a", () => under);
		expect(open().mayHaveLeft("a")).toBe(true);
		expect(open().of("a")).toBeUndefined();
	});

	test("a message whose answer came is known to every process", async () => {
		await open().create("a", async () => ({ messageId: "m1" }));
		expect(open().of("a")).toBe("m1");
		expect(open().has("m1")).toBe(true);
		expect(open().has("m2")).toBe(false);
	});

	test("a refused call has not left; one without an answer may have; a second try is as good as the first", async () => {
		const sent = open();
		const refused = () => Promise.reject(new PlatformError("rate_limited", "slow down"));
		await expect(sent.create("a", refused)).rejects.toThrow("slow down");
		expect(open().mayHaveLeft("a")).toBe(false);
		const broken = () => Promise.reject(new PlatformError("unknown_outcome", "reset"));
		await expect(sent.create("a", broken)).rejects.toThrow("reset");
		expect(open().mayHaveLeft("a")).toBe(true);
		// A refusal says nothing about the try before it.
		await expect(sent.create("a", refused)).rejects.toThrow("slow down");
		expect(open().mayHaveLeft("a")).toBe(true);
		const wrong = () => Promise.reject(new Error("a bug"));
		await expect(sent.create("b", wrong)).rejects.toThrow("a bug");
		expect(open().mayHaveLeft("b")).toBe(true);
	});

	test("a status that comes before the answer does not hide it, nor is it hidden", () => {
		void open().create("a", () => under);
		open().add("a", "m1");
		appendFileSync(file(), '\n{"nonce":"a","at":"refused"}');
		expect(open().of("a")).toBe("m1");
	});

	test("half a line costs that line only", () => {
		open().add("a", "m1");
		appendFileSync(file(), '\n{"nonce":"b","at":"se');
		open().add("c", "m3");
		expect([open().of("a"), open().of("b"), open().of("c")]).toEqual(["m1", undefined, "m3"]);
	});

	test("without a file nothing is certain", () => {
		expect(new SentLog(undefined, systemClock).mayHaveLeft("a")).toBe(true);
	});
});

describe("I7: a message that is recognised by its text", () => {
	const HOUR = 60 * 60_000;
	const lost = () => Promise.reject(new PlatformError("unknown_outcome", "reset"));

	/** A chat on a platform whose clock is `skewMs` ahead of ours. */
	function chat(skewMs: number) {
		const clock = manualClock(1_800_000_000_000);
		const sent = new SentLog(openNotes(file()), clock);
		const listed: KeptMessage[] = [];
		const make = (id: string) => listed.unshift({ ids: [id], ts: clock.now() + skewMs });
		const create = (nonce: string, id: string) =>
			sent.create(nonce, async () => {
				make(id);
				return { messageId: id };
			});
		const search = { list: async () => listed, isAlike: () => true, waitsMs: [0] };
		const find = (nonce: string) => sent.find(nonce, () => sent.findAlike(nonce, search));
		return { clock, sent, make, create, find };
	}

	test("what was found is noted: no later look-up takes it", async () => {
		const { sent, make, find } = chat(0);
		await sent.create("a", lost).catch(() => make("m1"));
		expect(await find("a")).toEqual({ messageId: "m1" });
		await sent.create("b", lost).catch(() => {});
		expect([open().of("a"), await find("b")]).toEqual(["m1", undefined]);
	});

	test.each([0, HOUR / 2, -HOUR / 2])(
		"a known message tells how far apart the clocks are (%i ms): one from before is not it, one from after is",
		async (skewMs) => {
			const { clock, sent, make, create, find } = chat(skewMs);
			make("older");
			clock.advance(1000);
			await create("a", "m1");
			clock.advance(60_000);
			await sent.create("b", lost).catch(() => {});
			expect(await find("b")).toBeUndefined();
			clock.advance(500);
			make("m2");
			expect(await find("b")).toEqual({ messageId: "m2" });
		},
	);

	test("one that came after every known message and before the call may be it by another clock: the look-up cannot decide", async () => {
		const { clock, sent, make, create, find } = chat(HOUR / 2);
		await create("a", "m1");
		clock.advance(10_000);
		make("between");
		clock.advance(10_000);
		await sent.create("b", lost).catch(() => {});
		await expect(find("b")).rejects.toMatchObject({ fault: "invalid" });
		make("m2");
		expect(await find("b")).toEqual({ messageId: "m2" });
	});

	test("without a known message clocks are taken to agree, and a message from before is doubtful for an hour", async () => {
		const { clock, sent, make, find } = chat(0);
		make("older");
		clock.advance(10_000);
		await sent.create("a", lost).catch(() => {});
		await expect(find("a")).rejects.toMatchObject({ fault: "invalid" });
		clock.advance(HOUR);
		await sent.create("b", lost).catch(() => {});
		expect(await find("b")).toBeUndefined();
		make("m1");
		expect(await find("b")).toEqual({ messageId: "m1" });
	});

	test("a try that was refused made nothing: what counts is when the one in doubt left", async () => {
		const { clock, sent, make, find } = chat(0);
		await sent.create("a", () => Promise.reject(new PlatformError("rate_limited", "slow down"))).catch(() => {});
		clock.advance(10_000);
		make("older");
		clock.advance(10_000);
		await sent.create("a", lost).catch(() => {});
		await expect(find("a")).rejects.toMatchObject({ fault: "invalid" });
	});

	test("without a note of when the call left, or the platform's time of a message, the look-up cannot decide", async () => {
		const { make, find, sent } = chat(0);
		appendFileSync(file(), '\n{"nonce":"a","at":"leaving"}');
		expect(await find("a")).toBeUndefined();
		make("m1");
		await expect(find("a")).rejects.toMatchObject({ fault: "invalid" });
		await sent.create("b", lost).catch(() => {});
		const search = { list: async () => [{ ids: ["x"] as const, ts: 0 }], isAlike: () => true, waitsMs: [0] };
		await expect(sent.findAlike("b", search)).rejects.toMatchObject({ fault: "invalid" });
	});

	test("a platform that cuts times to whole seconds has not made its message before the call", async () => {
		const { clock, sent, find, create } = chat(0);
		clock.advance(1900);
		await create("a", "m1");
		clock.advance(5000);
		await sent.create("b", lost).catch(() => {});
		const ts = Math.floor(clock.now() / 1000) * 1000;
		const cut = { list: async () => [{ ids: ["m2"] as const, ts }], isAlike: () => true, waitsMs: [0] };
		expect(await sent.findAlike("b", cut)).toEqual({ messageId: "m2" });
		expect(await find("a")).toEqual({ messageId: "m1" });
	});
});

describe("ST26: what the daemon keeps", () => {
	function kept() {
		const clock = manualClock();
		const said: KeepLine[] = [];
		const recorder = createRecorder((line) => void said.push(line), clock, 1000);
		const sent = new SentLog(openNotes(file(), recorder), clock);
		const answer = (line = said.at(-1)) => recorder.accept({ type: "noted", id: line?.id });
		return { clock, said, recorder, sent, answer };
	}

	test("I7: a message leaves once its note is on record; its outcome is reported too, but without waiting for an answer", async () => {
		const { said, sent, answer } = kept();
		let left = false;
		const work = async () => {
			left = true;
			return { messageId: "m1" };
		};
		const made = sent.create("a", work);
		await Promise.resolve();
		expect([left, said.length]).toEqual([false, 1]);
		expect(answer()).toBe(true);
		expect(await made).toEqual({ messageId: "m1" });
		const texts = said.map((line) => (line.type === "note" ? JSON.parse(line.text) : line));
		expect(texts).toMatchObject([
			{ nonce: "a", at: "leaving" },
			{ nonce: "a", at: "sent", messageId: "m1" },
		]);
		// The other processes of the account read it in the file.
		expect(open().of("a")).toBe("m1");
	});

	test.each(["in time", "any more"])(
		"I7: without an answer %s it never leaves, however late one comes",
		async (when) => {
			const { clock, recorder, sent, answer } = kept();
			const made = sent.create("a", () => expect.unreachable());
			if (when === "in time") clock.advance(1000);
			else recorder.end();
			await expect(made).rejects.toMatchObject({ fault: "unavailable" });
			answer();
			expect(open().mayHaveLeft("a")).toBe(false);
		},
	);

	test("a note that the daemon copied into the file counts once", async () => {
		const { said, sent, answer } = kept();
		const made = sent.create("a", () => Promise.reject(new PlatformError("denied", "no")));
		const [leaving] = said as [Extract<KeepLine, { type: "note" }>];
		appendFileSync(file(), `\n${leaving.text}`);
		answer();
		await expect(made).rejects.toThrow("no");
		expect(open().mayHaveLeft("a")).toBe(false);
	});

	test("a state is there at once, and read from the daemon's file when it is on record", async () => {
		const { said, recorder, answer } = kept();
		const path = join(folder, "state.json");
		const state = openState(path, recorder, silentLog);
		writeState(path, { other: "x" });
		state.set("position", "7");
		expect([state.get("position"), state.get("other")]).toEqual(["7", "x"]);
		expect(said).toMatchObject([{ type: "state", key: "position", value: "7" }]);
		expect(readFileSync(path, "utf8")).not.toContain("position");
		// As the daemon does; another process set it again meanwhile.
		writeState(path, { position: "8" });
		answer();
		await state.recorded?.();
		expect(state.get("position")).toBe("8");
		state.set("position", "8");
		expect(said).toHaveLength(1);
	});
});

test("I11: the file does not grow beyond its limit, and only its owner reads it", () => {
	const notes = openNotes(file(), undefined, 1000);
	for (let n = 0; n < 500; n++) notes.add(`line ${n}`);
	expect(readdirSync(folder).toSorted()).toEqual(["sent", "sent.1"]);
	expect(statSync(file()).mode & 0o777).toBe(0o600);
	expect(readFileSync(file()).length + readFileSync(`${file()}.1`).length).toBeLessThan(2100);
	expect(notes.all().slice(-100)).toEqual(Array.from({ length: 100 }, (_, n) => `line ${400 + n}`));
});
