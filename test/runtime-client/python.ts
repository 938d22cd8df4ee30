/** The system's Python with grpcio, and the example that reads the runtime contract with it. */

import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { it, onTestFinished } from "vitest";

const PYTHON = "/usr/bin/python3";
const EXAMPLE = fileURLToPath(new URL("../../examples/python/nexus_runtime.py", import.meta.url));

export const hasPython = spawnSync(PYTHON, ["-c", "import grpc, google.protobuf"]).status === 0;
const required = process.env.CI === "true";
if (!hasPython && !required) console.log("SKIPPED: no python3-grpcio, so the contract is not read with Python");

/** Skipped where there is no grpcio, except in CI: there it fails. */
export const itInPython = it.skipIf(!hasPython && !required);

/** The descriptors that the example loads instead of generated code. */
export function buildDescriptors(to: string): void {
	const buf = fileURLToPath(new URL("../../node_modules/@bufbuild/buf/bin/buf", import.meta.url));
	const root = fileURLToPath(new URL("../..", import.meta.url));
	const { status, stderr } = spawnSync(process.execPath, [buf, "build", "-o", to], { cwd: root, encoding: "utf8" });
	if (status !== 0) throw new Error(`buf build: ${stderr}`);
}

export type Line = Record<string, unknown>;

export interface Reading {
	/** Every event and notice so far, in order. */
	readonly lines: Line[];
	/** Resolves with whether it went well, when it has ended. */
	readonly ended: Promise<boolean>;
	stop(): void;
}

export interface Where {
	/** `http://host:port` of the gRPC port. */
	grpc: string;
	token: string;
	descriptors: string;
}

export function readInPython(args: readonly string[], { grpc, token, descriptors }: Where, env = {}): Reading {
	const child = spawn(PYTHON, [EXAMPLE, ...args], {
		env: { NEXUS_GRPC: new URL(grpc).host, NEXUS_TOKEN: token, NEXUS_DESCRIPTORS: descriptors, ...env },
		stdio: ["ignore", "pipe", "inherit"],
	});
	const lines: Line[] = [];
	createInterface({ input: child.stdout }).on("line", (line) => lines.push(JSON.parse(line) as Line));
	const ended = new Promise<boolean>((resolve) => child.on("close", (code) => resolve(code === 0)));
	const stop = () => void child.kill("SIGKILL");
	onTestFinished(stop);
	return { lines, ended, stop };
}
