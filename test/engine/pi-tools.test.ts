import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fauxAssistantMessage, fauxToolCall } from "@earendil-works/pi-ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bounded } from "../../packages/daemon/src/engine/kit/kit.ts";
import { builtInTools } from "../../packages/daemon/src/engine/pi/pi.ts";
import { timeIn } from "../../packages/daemon/src/engine/tools/built-in.ts";
import { readTextFile } from "../../packages/daemon/src/engine/tools/files/read-file.ts";
import { ask, deaf, fauxEngine, lookingModel, ranWell, run, said, tool, toolsOf } from "./pi-kit.ts";

describe("time", () => {
	const now = Date.UTC(2026, 2, 29, 0, 59, 58);

	test.each([
		["UTC", "2026-03-29T00:59:58+00:00, Sunday (UTC)"],
		["Europe/Berlin", "2026-03-29T01:59:58+01:00, Sunday (Europe/Berlin)"],
		["America/New_York", "2026-03-28T20:59:58-04:00, Saturday (America/New_York)"],
		["Asia/Kathmandu", "2026-03-29T06:44:58+05:45, Sunday (Asia/Kathmandu)"],
	])("in %s", (zone, text) => {
		expect(timeIn(zone, now)).toBe(text);
	});

	test("midnight is 00, not 24", () => {
		expect(timeIn("UTC", Date.UTC(2026, 0, 1))).toContain("2026-01-01T00:00:00+00:00");
	});

	test("an unknown zone is said so", () => {
		expect(() => timeIn("Mars/Olympus", now)).toThrow(/unknown time zone "Mars\/Olympus": use an IANA name/);
	});
});

describe("read_file", () => {
	let base: string;
	let root: string;

	beforeAll(() => {
		base = mkdtempSync(path.join(tmpdir(), "nexus-files-"));
		root = path.join(base, "root");
		mkdirSync(path.join(root, "sub"), { recursive: true });
		mkdirSync(path.join(base, "root-sibling"));
		writeFileSync(path.join(root, "notes.md"), "hello ü\n");
		writeFileSync(path.join(root, "sub", "deep.txt"), "deep");
		writeFileSync(path.join(root, "..odd"), "odd");
		writeFileSync(path.join(root, "empty"), "");
		writeFileSync(path.join(root, "full"), "x".repeat(100));
		writeFileSync(path.join(root, "big"), "x".repeat(101));
		writeFileSync(path.join(root, "nul.bin"), Buffer.from([65, 0, 66]));
		writeFileSync(path.join(root, "latin1.txt"), Buffer.from([0x66, 0xfc, 0x72]));
		writeFileSync(path.join(base, "secret"), "secret");
		writeFileSync(path.join(base, "root-sibling", "secret"), "secret");
		symlinkSync(path.join(base, "secret"), path.join(root, "link"));
		symlinkSync(base, path.join(root, "up"));
		symlinkSync("notes.md", path.join(root, "inner-link"));
		symlinkSync("nowhere", path.join(root, "dangling"));
		execFileSync("/bin/sh", ["-c", "mkfifo pipe"], { cwd: root });
	});

	afterAll(() => rmSync(base, { recursive: true, force: true }));

	const read = (asked: string) => readTextFile(root, asked, { fileBytesMax: 100 });

	test.each([
		["notes.md", "hello ü\n"],
		["./sub/../notes.md", "hello ü\n"],
		["sub/deep.txt", "deep"],
		["inner-link", "hello ü\n"],
		["..odd", "odd"],
		["empty", ""],
		["full", "x".repeat(100)],
	])("reads %s", async (asked, text) => {
		expect(await read(asked)).toBe(text);
		expect(await read(path.join(root, asked))).toBe(text);
	});

	test.each([
		["../secret"],
		["sub/../../secret"],
		[".."],
		["/etc/passwd"],
		["../root-sibling/secret"],
		["link"],
		["up/secret"],
		["up/root-sibling/secret"],
		["sub/../link"],
	])("does not leave the folder by %s", async (asked) => {
		await expect(read(asked)).rejects.toThrow(`"${asked}" is outside the folder that may be used`);
	});

	test("an absolute path outside is refused without a look at it", async () => {
		await expect(read(path.join(base, "secret"))).rejects.toThrow(/outside the folder/);
		await expect(read(path.join(base, "not-there"))).rejects.toThrow(/outside the folder/);
	});

	test.each([
		["big", /"big" has 101 bytes, and at most 100 can be read/],
		["nul.bin", /not a text file/],
		["latin1.txt", /not a text file \(not UTF-8\)/],
		["sub", /"sub" is a folder/],
		[".", /is a folder/],
		["pipe", /not a regular file/],
		["missing", /there is no file "missing"/],
		["notes.md/x", /there is no file/],
		["dangling", /there is no file "dangling"/],
		["a\0b", /zero byte/],
	])("says why it cannot read %j", async (asked, message) => {
		await expect(read(asked)).rejects.toThrow(message);
	});

	test("a files root that is itself a link works", async () => {
		const link = path.join(base, "root-link");
		symlinkSync(root, link);
		expect(await readTextFile(link, "notes.md")).toBe("hello ü\n");
		await expect(readTextFile(link, "../secret")).rejects.toThrow(/outside/);
		const secretFiles = [path.join(root, "notes.md")];
		await expect(readTextFile(link, "notes.md", { secretFiles })).rejects.toThrow(/may hold secrets/);
	});

	test("is offered only with a files root", () => {
		const names = (filesRoot?: string) => builtInTools({ filesRoot, now: Date.now }).map(({ name }) => name);
		expect(names()).toEqual(["time"]);
		expect(names(root)).toEqual(["time", "read_file"]);
	});
});

describe("bounded", () => {
	test("I12: a tool that listens to nothing fails when its time is over", async () => {
		await expect(bounded(tool("slow", deaf), 20).execute("1", {})).rejects.toThrow("slow did not finish within 20 ms");
	});

	test("I12: a tool that listens to nothing ends on abort", async () => {
		const controller = new AbortController();
		const running = bounded(tool("slow", deaf), 60_000).execute("1", {}, controller.signal);
		controller.abort();
		await expect(running).rejects.toThrow("slow was stopped before it finished");
	});

	test("I12: a tool whose run was stopped before it began is not begun", async () => {
		let begun = false;
		const changing = tool("changing", async () => {
			begun = true;
			return said("done");
		});
		const running = bounded(changing, 1_000).execute("1", {}, AbortSignal.abort());
		await expect(running).rejects.toThrow("changing was stopped before it began");
		expect(begun).toBe(false);
	});

	test("the tool hears of its deadline", async () => {
		const heard = Promise.withResolvers<void>();
		const listening = tool("listening", async (_id, _params, signal) => {
			signal?.addEventListener("abort", () => heard.resolve());
			return deaf();
		});
		await expect(bounded(listening, 10).execute("1", {})).rejects.toThrow(/within 10 ms/);
		await heard.promise;
	});

	test("toolMs: .inf gives a tool all the time it wants", async () => {
		const slow = tool("slow", async () => {
			await new Promise((resolve) => setTimeout(resolve, 50));
			return said("done");
		});
		expect(await bounded(slow, Infinity).execute("1", {})).toEqual(said("done"));
	});

	test("a tool in time is left alone, result and failure", async () => {
		expect(
			await bounded(
				tool("quick", async () => said("done")),
				1_000,
			).execute("1", {}),
		).toEqual(said("done"));
		const failing = tool("failing", async () => {
			throw new Error("no luck");
		});
		await expect(bounded(failing, 1_000).execute("1", {})).rejects.toThrow("no luck");
	});
});

describe("allowedTools", () => {
	const other = tool("other", async () => said("done"));
	/** The tools that the model was offered. */
	const offered = async (allowedTools?: string[]) => {
		const { response, offered } = lookingModel();
		const { engine } = await fauxEngine([response], { tools: [other] });
		await ranWell(engine, ask("hi", allowedTools === undefined ? {} : { allowedTools }));
		return offered;
	};

	test("only the tools of the list are offered, and all without one", async () => {
		expect(await offered()).toEqual(["time", "other"]);
		expect(await offered(["other", "no such tool"])).toEqual(["other"]);
		expect(await offered([])).toEqual([]);
	});

	test("a model that calls an unknown tool reads that there is none", async () => {
		const call = fauxAssistantMessage(fauxToolCall("other", {}, { id: "a" }), { stopReason: "toolUse" });
		const { engine } = await fauxEngine([call, fauxAssistantMessage("Then not.")], { tools: [other] });
		const { events } = await run(engine, ask("hi", { allowedTools: ["time"] }));
		expect(toolsOf(events).at(-1)).toMatchObject({ name: "other", status: "failed" });
	});
});
