/** Documents name what is there: the paths in ARCHITECTURE.md, and every decision in the index. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesBelow } from "./files.ts";
import { sourcesBelow } from "./imports.ts";
import { LEVELS } from "./rules.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const markdownBelow = (folder: string): string[] =>
	readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
		.filter((file) => file.endsWith(".md"))
		.map((file) => join(folder, file));

/** The anchors that GitHub gives to headings. */
const anchorsOf = (text: string): Set<string> =>
	new Set(
		[...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
			heading!
				.toLowerCase()
				.replace(/[^\w\s-]/g, "")
				.trim()
				.replace(/\s/g, "-"),
		),
	);

describe("structure: the documents", () => {
	it("every path that ARCHITECTURE.md names exists, from the root or in a package (`daemon/bus/` is `packages/daemon/src/bus/`)", () => {
		const named = [...read("ARCHITECTURE.md").matchAll(/`([\w.-]+(?:\/[\w.-]+)*(?:\/|\.(?:tsx?|md)))`/g)];
		const paths = named.map(([, path]) => path!);
		expect(paths.length).toBeGreaterThan(20);
		const inPackage = (path: string) => join("packages", path.replace("/", "/src/"));
		expect(paths.filter((path) => ![path, inPackage(path)].some((each) => existsSync(join(root, each))))).toEqual([]);
	});

	it("every path in another document exists", () => {
		const files = ["README.md", "CONTRIBUTING.md", "PROTOCOL.md", "CHANGELOG.md", ...markdownBelow("docs")];
		const missing = files.flatMap((file) =>
			[...read(file).matchAll(/`((?:packages|test|docs|examples|scripts|bench)\/[\w./-]*\w\/?)`/g)]
				.filter(([, path]) => !existsSync(join(root, path!)))
				.map(([, path]) => `${file} names ${path}`),
		);
		expect(missing).toEqual([]);
	});

	it("every source file that another document names by its last part exists", () => {
		const sources = [...filesBelow(root, /\.tsx?$/).keys()].map((file) => `/${file}`);
		const missing = [...markdownBelow("docs"), "CONTRIBUTING.md", "PROTOCOL.md"].flatMap((file) =>
			[...read(file).matchAll(/`(?:\.\.?\/)*((?:[\w-]+\/)*[\w-]+\.tsx?)`/g)]
				.filter(([, name]) => !sources.some((source) => source.endsWith(`/${name}`)))
				.map(([, name]) => `${file} names ${name}`),
		);
		expect(missing).toEqual([]);
	});

	it("every link between documents leads to a file and a heading that exist", () => {
		const files = [
			...["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "PROTOCOL.md", "CHANGELOG.md"],
			...[...markdownBelow("docs"), ...markdownBelow("packages/platforms/src")],
		];
		const broken = files.flatMap((file) =>
			[...read(file).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].flatMap(([, path, anchor]) => {
				const target = path === "" ? file : join(dirname(file), path!);
				if (!existsSync(join(root, target))) return [`${file} links to ${path}`];
				if (anchor === undefined || anchorsOf(read(target)).has(anchor)) return [];
				return [`${file} links to ${path}#${anchor}`];
			}),
		);
		expect(broken).toEqual([]);
	});

	it("the folders and their levels are those that the rules enforce", () => {
		const levels: string[][] = [];
		for (const [, level, folder] of read("ARCHITECTURE.md").matchAll(/^(L\d)? {1,3}([\w-]+)\/ {2,}\S/gm)) {
			if (level) levels.push([folder!]);
			else levels.at(-1)!.push(folder!);
		}
		expect(levels).toEqual(LEVELS.filter(([folder]) => folder !== "."));
	});

	it("the rules of the store are numbered without a hole; each is cited by a test, and none that is not there", () => {
		const rules = [...read("docs/store.md").matchAll(/^- \*\*(ST\d+)\*\* (\*Not kept yet)?/gm)];
		expect(rules.map(([, id]) => id)).toEqual(rules.map((_, at) => `ST${at + 1}`));
		const citedIn = (folder: string) =>
			[...sourcesBelow(join(root, folder)).values()].flatMap((source) => source.match(/\bST\d+\b/g) ?? []);
		const kept = rules.flatMap(([, id, open]) => (open ? [] : [id!]));
		expect([...new Set(citedIn("test"))].toSorted()).toEqual(kept.toSorted());
		expect(citedIn("packages").filter((id) => !kept.includes(id))).toEqual([]);
	});

	it("the index of decisions lists every one of them, in order, by its title", () => {
		const files = readdirSync(join(root, "docs/adr")).filter((file) => file !== "README.md");
		const listed = [...read("docs/adr/README.md").matchAll(/^- \[(.+?)\]\((.+?)\): \S/gm)];
		expect(listed.map(([, , file]) => file)).toEqual(files.toSorted());
		for (const [, title, file] of listed) expect(read(`docs/adr/${file}`).split("\n")[0], file).toBe(`# ${title}`);
	});

	it("decisions are numbered without a hole, by their files' names, and have a date and a status", () => {
		const files = readdirSync(join(root, "docs/adr")).filter((file) => file !== "README.md");
		const numbers = files.toSorted().map((file) => Number(file.slice(0, 4)));
		expect(numbers).toEqual(files.map((_, at) => at + 1));
		for (const [at, file] of files.toSorted().entries())
			expect(read(`docs/adr/${file}`), file).toMatch(
				new RegExp(`^# ${numbers[at]}\\. .+\\n\\nDate: \\d{4}-\\d\\d-\\d\\d\\. Status: (accepted|superseded)`),
			);
	});
});
