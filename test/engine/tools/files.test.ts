/** `read`, `write` and `edit`: only within one folder, and never the daemon's own files. */

import { execFileSync } from "node:child_process";
import {
	chmodSync,
	existsSync,
	lstatSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import type { Tool } from "../../../packages/daemon/src/engine/tool.ts";
import { fileTools, replaceOnce } from "../../../packages/daemon/src/engine/tools/files/files.ts";
import { builtInTools } from "../../../packages/daemon/src/engine/tools/tools.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { atEffort } from "../../effort.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { call } from "./kit.ts";

let base: string;
let root: string;
let tools: Tool[];

beforeEach(() => {
	base = freshFolder();
	root = join(base, "root");
	mkdirSync(join(root, "sub"), { recursive: true });
	writeFileSync(join(root, "note.txt"), "one two three\n");
	writeFileSync(join(base, "secret"), "secret");
	symlinkSync(base, join(root, "up"));
	symlinkSync(join(base, "secret"), join(root, "link"));
	symlinkSync("sub", join(root, "inner"));
	symlinkSync("nowhere", join(root, "dangling"));
	writeFileSync(join(root, "nexus.yaml"), "token: abc");
	writeFileSync(join(root, "lead.md"), "You are the lead.");
	tools = fileTools({
		root,
		fileBytesMax: 1000,
		protectedFiles: [join(root, "nexus.yaml"), join(root, "lead.md"), join(root, "later.yaml")],
		secretFiles: [join(root, "nexus.yaml")],
	});
});

const write = (path: string, content = "new") => call(tools, "write", { path, content });
const edit = (path: string, old_text: string, new_text: string) => call(tools, "edit", { path, old_text, new_text });

describe("write", () => {
	test("makes a file with its folders, or replaces it, and leaves nothing else behind", async () => {
		expect(await write("a/b/c.txt", "hällo")).toEqual({ text: 'created "a/b/c.txt": 6 bytes', failed: false });
		expect(await write("a/b/c.txt", "x")).toMatchObject({ text: 'replaced "a/b/c.txt": 1 bytes' });
		expect(readFileSync(join(root, "a/b/c.txt"), "utf8")).toBe("x");
		expect(readdirSync(join(root, "a/b"))).toEqual(["c.txt"]);
		expect(await write("inner/d.txt", "inside")).toMatchObject({ failed: false });
		expect(readFileSync(join(root, "sub/d.txt"), "utf8")).toBe("inside");
	});

	test("keeps the permissions of the file it replaces", async () => {
		chmodSync(join(root, "note.txt"), 0o750);
		await write("note.txt");
		expect(statSync(join(root, "note.txt")).mode & 0o777).toBe(0o750);
	});

	test.each(["../x", "/etc/passwd", "up/x", "up/secret", "link", "sub/../../x", "a/../../x", "up/new/x"])(
		"A15: does not leave the folder by %s",
		async (path) => {
			expect(await write(path)).toEqual({ text: `"${path}" is outside the folder that may be used`, failed: true });
			expect(readFileSync(join(base, "secret"), "utf8")).toBe("secret");
			expect(readdirSync(base).toSorted()).toEqual(["root", "secret"]);
		},
	);

	test.each([
		["sub", /is a folder/],
		[".", /is a folder/],
		["new/", /is a folder/],
		["dangling", /is a link that leads nowhere/],
		["note.txt/x", /there is no file/],
		["a\0b", /zero byte/],
	])("says why it cannot write %j", async (path, message) => {
		const { text, failed } = await write(path);
		expect(text).toMatch(message);
		expect(failed).toBe(true);
	});

	test("a link that leads nowhere stays a link", async () => {
		await write("dangling");
		expect(lstatSync(join(root, "dangling")).isSymbolicLink()).toBe(true);
		expect(existsSync(join(root, "nowhere"))).toBe(false);
	});

	test("a pipe is not written", async () => {
		execFileSync("/bin/sh", ["-c", "mkfifo pipe"], { cwd: root });
		expect(await write("pipe")).toMatchObject({ text: '"pipe" is not a regular file' });
	});

	test("sizes are bounded in bytes, and half a character is not text", async () => {
		expect(await write("big", "ü".repeat(501))).toMatchObject({
			text: '"big" would have 1002 bytes, and at most 1000 can be written',
		});
		expect(await write("half", "\ud83d")).toMatchObject({ failed: true, text: expect.stringContaining("half a") });
	});

	test.each([".git/config", "sub/.git/hooks/pre-commit", ".GIT/x", ".git", "a/.git./x", ".g\u200cit/x"])(
		"A15: the insides of a repository are refused: %s",
		async (path) => {
			expect(await write(path)).toEqual({ text: `"${path}" is inside .git and cannot be written`, failed: true });
			expect(readdirSync(root)).not.toContain(".git");
		},
	);

	test.each(["nexus.yaml", "lead.md", "later.yaml", "./sub/../nexus.yaml", "inner/../nexus.yaml"])(
		"A15: what configures the agent is refused, there or not: %s",
		async (path) => {
			expect(await write(path)).toMatchObject({ text: expect.stringContaining("belongs to the configuration") });
			expect(await edit(path, "a", "b")).toMatchObject({
				text: expect.stringContaining("belongs to the configuration"),
			});
			expect(readFileSync(join(root, "nexus.yaml"), "utf8")).toBe("token: abc");
			expect(existsSync(join(root, "later.yaml"))).toBe(false);
		},
	);

	test("A15: neither by a link to it", async () => {
		symlinkSync("nexus.yaml", join(root, "innocent.txt"));
		expect(await write("innocent.txt")).toMatchObject({ text: expect.stringContaining("configuration") });
		expect(await call(tools, "read", { path: "innocent.txt" })).toMatchObject({
			failed: true,
			text: expect.stringContaining("may hold secrets"),
		});
	});
});

describe("edit", () => {
	test("replaces the one piece, and keeps the rest and the mark at the beginning", async () => {
		writeFileSync(join(root, "bom.txt"), "\uFEFFone\r\ntwo\r\n");
		expect(await edit("bom.txt", "two", "2")).toEqual({ text: 'edited "bom.txt"', failed: false });
		expect(readFileSync(join(root, "bom.txt"), "utf8")).toBe("\uFEFFone\r\n2\r\n");
		expect(await edit("note.txt", " two", "")).toMatchObject({ failed: false });
		expect(readFileSync(join(root, "note.txt"), "utf8")).toBe("one three\n");
	});

	test.each([
		["four", "x", /does not stand in "note.txt"/],
		["e", "x", /more than once/],
		["one", "one", /are the same/],
		["", "x", /is empty/],
	])("%j is not replaced by %j", async (old, replacement, message) => {
		expect((await edit("note.txt", old, replacement)).text).toMatch(message);
		expect(readFileSync(join(root, "note.txt"), "utf8")).toBe("one two three\n");
	});

	test("a file that is missing, not text, or too long is reported as such", async () => {
		writeFileSync(join(root, "bin"), Buffer.from([1, 0, 2]));
		writeFileSync(join(root, "long"), "x".repeat(1001));
		expect((await edit("none", "a", "b")).text).toBe('there is no file "none"');
		expect((await edit("none/none", "a", "b")).text).toBe('there is no file "none/none"');
		expect((await edit("bin", "a", "b")).text).toBe('"bin" is not a text file');
		expect((await edit("long", "a", "b")).text).toContain("at most 1000");
		expect((await edit("up/secret", "s", "b")).text).toContain("outside");
		expect((await edit("note.txt", "two", "2".repeat(1000))).text).toContain("at most 1000");
	});

	test("half a character is never torn off", async () => {
		writeFileSync(join(root, "emoji"), "a😀b");
		expect((await edit("emoji", "\ude00", "x")).text).toContain("half a character");
		expect(readFileSync(join(root, "emoji"), "utf8")).toBe("a😀b");
	});

	test("for every text and piece: replaced exactly where it stands, or not at all", () => {
		const some = fc.string({ unit: fc.constantFrom("a", "b", "\n", "$&"), maxLength: 12 });
		fc.assert(
			fc.property(some, some, some, (text, old, replacement) => {
				const places = Array.from({ length: text.length }, (_, at) => at).filter((at) => text.startsWith(old, at));
				const works = old !== "" && old !== replacement && places.length === 1;
				const change = () => replaceOnce(text, old, replacement, "f");
				if (!works) expect(change).toThrow();
				else expect(change()).toBe(text.slice(0, places[0]) + replacement + text.slice(places[0]! + old.length));
			}),
			{ numRuns: atEffort(5000) },
		);
	});
});

describe("the tools as they are offered", () => {
	test("A11, A21: what changes something runs alone, and needs approval for others than the owner", () => {
		expect(tools.map(({ name, exclusive = false, approval = "never" }) => [name, exclusive, approval])).toEqual([
			["read", false, "never"],
			["write", true, "non-owner"],
			["edit", true, "non-owner"],
		]);
	});

	test("a call whose run has been stopped writes nothing", async () => {
		const signal = AbortSignal.abort();
		expect(await call(tools, "write", { path: "x", content: "" }, { signal })).toMatchObject({ failed: true });
		expect(existsSync(join(root, "x"))).toBe(false);
	});

	test("A15: a root that holds the data directory, or lies in it, is refused at the start", async () => {
		const build = (given: string, dataDir: string) =>
			builtInTools({ root: given }, { base, env: {}, dataDir, clock: systemClock });
		mkdirSync(join(base, "data", "deep"), { recursive: true });
		symlinkSync(join(base, "data"), join(root, "linked"));
		for (const [given, dataDir, how] of [
			[".", join(base, "data"), "contains"],
			[".", join(base, "not-yet"), "contains"],
			["data", join(base, "data"), "contains"],
			["data/deep", join(base, "data"), "lies in"],
			["root/linked/deep", join(base, "data"), "lies in"],
		] as const)
			await expect(build(given, dataDir), `${given} ${dataDir}`).rejects.toMatchObject({
				code: "config",
				message: expect.stringContaining(`\`tools.root\` ${how} the data directory`),
			});
		expect((await build("root", join(base, "data"))).map(({ name }) => name)).toEqual([
			"time",
			"ask",
			"read",
			"write",
			"edit",
		]);
	});

	test("without a root there are neither files nor a shell", async () => {
		const place = { base, env: {}, clock: systemClock };
		expect((await builtInTools({}, place)).map(({ name }) => name)).toEqual(["time", "ask"]);
		await expect(builtInTools({ bash: { enabled: true } }, place)).rejects.toMatchObject({ code: "config" });
	});
});
