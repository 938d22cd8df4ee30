/**
 * `npm run lock`: completes package-lock.json with the binaries of other platforms. npm leaves out those that the registry in
 * use does not carry, and `npm ci` then refuses the file everywhere.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./run.ts";

export interface LockedPackage {
	version?: string;
	cpu?: string[];
	os?: string[];
	libc?: string[];
	dev?: boolean;
	optional?: boolean;
	optionalDependencies?: Record<string, string>;
}

export interface Lockfile {
	packages: Record<string, LockedPackage>;
}

/** Where a package that is needed at `from` would be found, or undefined. */
function found({ packages }: Lockfile, from: string, name: string): string | undefined {
	for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
		const place = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
		if (packages[place]) return place;
		if (folder === "") return undefined;
	}
}

export interface Gap {
	name: string;
	version: string;
	dev: boolean;
}

/** Optional dependencies that the lock file does not pin. */
export function gaps(lock: Lockfile): Gap[] {
	return Object.entries(lock.packages).flatMap(([place, { optionalDependencies = {}, dev = false }]) =>
		Object.entries(optionalDependencies)
			.filter(([name]) => found(lock, place, name) === undefined)
			.map(([name, version]) => ({ name, version, dev })),
	);
}

const PLATFORM = /[-/](android|darwin|freebsd|linux|openharmony|win32|wasm32)-([a-z0-9]+)(?:-([a-z]+))?$/;

/** `@x/binding-linux-arm64-musl` → what npm has to know to leave it alone on another machine. */
export function entryOf({ name, version, dev }: Gap): LockedPackage {
	const [, os = "", cpu = "", abi = ""] = PLATFORM.exec(name) ?? [];
	if (os === "" || !/^\d+\.\d+\.\d+$/.test(version))
		throw new Error(`${name}@${version}: not the binary of a platform`);
	const libc = abi === "musl" ? ["musl"] : abi === "gnu" && os === "linux" ? ["glibc"] : undefined;
	return {
		version,
		cpu: [os === "wasm32" ? os : cpu],
		dev: dev || undefined,
		libc,
		optional: true,
		os: os === "wasm32" ? undefined : [os],
	};
}

export function complete(lock: Lockfile): Lockfile {
	const added = gaps(lock).map((gap): [string, LockedPackage] => [`node_modules/${gap.name}`, entryOf(gap)]);
	const packages = [...Object.entries(lock.packages), ...added].sort(([a], [b]) => a.localeCompare(b, "en"));
	return { ...lock, packages: Object.fromEntries(packages) };
}

if (import.meta.main) {
	const file = join(ROOT, "package-lock.json");
	const lock = JSON.parse(readFileSync(file, "utf8")) as Lockfile;
	console.log(`package-lock.json: ${gaps(lock).length} packages of other platforms added`);
	writeFileSync(file, `${JSON.stringify(complete(lock), null, "\t")}\n`);
}
