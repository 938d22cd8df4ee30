import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

test("pi is loaded when an engine is made, not when its file is imported", () => {
	for (const folder of ["packages/daemon/src/engine/pi", "packages/daemon/src/engine/pi-coding-agent"]) {
		for (const name of readdirSync(folder)) {
			const source = readFileSync(path.join(folder, name), "utf8");
			const statics = source.match(/^import [^;]*?from "@earendil-works[^;]*;/gms) ?? [];
			for (const line of statics) expect(line, name).toMatch(/^import type /);
		}
	}
});

test("the kit knows no agent library", () => {
	for (const name of readdirSync("packages/daemon/src/engine/kit"))
		expect(readFileSync(path.join("packages/daemon/src/engine/kit", name), "utf8"), name).not.toContain(
			"@earendil-works",
		);
});
