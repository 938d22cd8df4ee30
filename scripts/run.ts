/** Starts the programs that the development commands are made of. */

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));

const PACKAGE_OF: Record<string, string> = { biome: "@biomejs/biome", buf: "@bufbuild/buf", tsc: "typescript" };

/** The script behind a package's binary, so that it runs on this very Node whatever the PATH says. */
function binOf(name: string): string {
	const folder = join(ROOT, "node_modules", PACKAGE_OF[name] ?? name);
	const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
		bin: string | Record<string, string>;
	};
	const script = typeof bin === "string" ? bin : bin[name];
	if (script === undefined) throw new Error(`${folder} has no binary named ${name}; run npm ci`);
	return join(folder, script);
}

export interface Finished {
	code: number;
	/** The output, when it was captured. */
	output: string;
	seconds: number;
}

/** Runs a program to its end. Captured output is for those that run side by side. */
export function run(command: readonly string[], options: { capture?: boolean; env?: NodeJS.ProcessEnv } = {}) {
	const started = performance.now();
	return new Promise<Finished>((resolve, reject) => {
		const [file = "", ...args] = command;
		const child = spawn(file, args, {
			cwd: ROOT,
			env: { ...process.env, ...options.env },
			stdio: options.capture ? ["ignore", "pipe", "pipe"] : "inherit",
		});
		let output = "";
		for (const stream of [child.stdout, child.stderr]) {
			stream?.setEncoding("utf8").on("data", (text: string) => {
				output += text;
			});
		}
		child.on("error", reject);
		child.on("close", (code) => resolve({ code: code ?? 1, output, seconds: (performance.now() - started) / 1000 }));
	});
}

/** Runs a package's binary on this Node. */
export const runBin = (name: string, args: readonly string[], options?: Parameters<typeof run>[1]) =>
	run([process.execPath, binOf(name), ...args], options);
