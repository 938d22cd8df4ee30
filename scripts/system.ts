/** The programs that tests need and npm cannot bring: found, installed where that is possible, or named. */

import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { postgresBin } from "../test/postgres-server.ts";
import { run } from "./run.ts";

interface SystemPart {
	/** Any of these on the PATH will do. */
	programs: readonly string[];
	/** A feature that the first of them must have. */
	proof?: readonly string[];
	/** Finds them outside of the PATH. */
	isFound?: () => boolean;
	/** The package of Debian and Ubuntu. */
	apt: string;
	/** The tests that are skipped without it. */
	tests: string;
}

/** The system's own: another one on the PATH does not have Debian's packages. */
const PYTHON = "/usr/bin/python3";

const PARTS: readonly SystemPart[] = [
	{ programs: ["chromium", "chromium-browser", "google-chrome"], apt: "chromium", tests: "the page in a real browser" },
	{ programs: ["jq"], apt: "jq", tests: "the README's and the help's examples with jq" },
	{
		programs: [PYTHON],
		proof: ["-c", "import grpc, google.protobuf"],
		apt: "python3-grpcio",
		tests: "a client of gRPC that is not ours (Python)",
	},
	{
		programs: ["postgres"],
		isFound: () => postgresBin() !== undefined,
		apt: "postgresql",
		tests: "the store in PostgreSQL",
	},
];

function onPath(program: string): boolean {
	const folders = isAbsolute(program) ? [""] : (process.env.PATH ?? "").split(delimiter);
	return folders.some((folder) => {
		try {
			accessSync(join(folder, program), constants.X_OK);
			return true;
		} catch {
			return false;
		}
	});
}

function isThere({ programs, proof, isFound }: SystemPart): boolean {
	if (isFound) return isFound();
	return proof ? onPath(programs[0]!) && spawnSync(programs[0]!, proof).status === 0 : programs.some(onPath);
}

const CLUSTERS = "/etc/postgresql-common/createcluster.conf";

/** Debian's package would make a database and start it: the tests start their own. */
function withoutCluster(): void {
	if (existsSync(CLUSTERS)) return;
	mkdirSync(dirname(CLUSTERS), { recursive: true });
	writeFileSync(CLUSTERS, "create_main_cluster = false\n");
}

const missing = () => PARTS.filter((part) => !isThere(part));

/** Returns false when something is missing and may not be (CI). */
export async function provideSystemParts(): Promise<boolean> {
	let lacking = missing();
	if (lacking.length > 0 && process.getuid?.() === 0 && onPath("apt-get")) {
		const packages = lacking.map((part) => part.apt);
		console.log(`installing what the tests need from the system: apt-get install ${packages.join(" ")}`);
		const env = { DEBIAN_FRONTEND: "noninteractive" };
		if (packages.includes("postgresql")) withoutCluster();
		const update = await run(["apt-get", "update", "-q"], { capture: true, env });
		// A settings file that is there already stays, and is not asked about.
		const keep = ["-o", "Dpkg::Options::=--force-confold"];
		const install = await run(["apt-get", "install", "-qy", ...keep, ...packages], { capture: true, env });
		if (install.code !== 0) console.log(`${update.output}\n${install.output}`);
		lacking = missing();
	}
	for (const part of lacking) {
		console.log(
			`missing: ${part.proof ? part.apt : part.programs[0]}. Skipped without it: ${part.tests}. Install it, for example: sudo apt-get install ${part.apt}`,
		);
	}
	const required = !["", "0", "false", undefined].includes(process.env.CI);
	if (lacking.length > 0 && required) console.log("CI is set: nothing may be skipped");
	return lacking.length === 0 || !required;
}
