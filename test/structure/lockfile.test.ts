/** `npm ci` must work on a clean machine: the lock file pins everything that may be installed. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { complete, entryOf, gaps, type Lockfile } from "../../scripts/lockfile.ts";
import { PACKAGES } from "./imports.ts";

const read = (name: string) => JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), "utf8"));

describe("structure: the lock file", () => {
	const lock = read("package-lock.json") as Lockfile;

	it("pins the optional packages of every platform (repair: npm run lock)", () => expect(gaps(lock)).toEqual([]));

	it("names no registry", () => expect(JSON.stringify(lock)).not.toContain('"resolved":"http'));

	it("is what package.json asks for", () => {
		for (const folder of ["", ...PACKAGES.map((name) => `packages/${name}`)]) {
			const { dependencies = {}, devDependencies = {} } = read(join(folder, "package.json"));
			expect({ dependencies: {}, devDependencies: {}, ...lock.packages[folder] }).toMatchObject({
				dependencies,
				devDependencies,
			});
		}
	});

	it("is completed with what npm needs to skip a platform", () => {
		const gap = (name: string) => entryOf({ name, version: "1.2.3", dev: true });
		expect(gap("@x/binding-linux-arm64-musl")).toMatchObject({ os: ["linux"], cpu: ["arm64"], libc: ["musl"] });
		expect(gap("@x/darwin-x64")).toEqual({ version: "1.2.3", cpu: ["x64"], dev: true, optional: true, os: ["darwin"] });
		const incomplete: Lockfile = {
			packages: { "node_modules/a": { optionalDependencies: { "@x/win32-x64": "1.2.3" } } },
		};
		expect(gaps(incomplete)).toHaveLength(1);
		expect(gaps(complete(incomplete))).toEqual([]);
	});
});
