/** Loaded before an adapter that streams (`--import`): writes the counts of its process into a file whenever the process gets SIGUSR2. */

import { renameSync, writeFileSync } from "node:fs";
import { startCoverage } from "./coverage.ts";

const file = new URL(import.meta.url).searchParams.get("file");
if (file !== null && process.argv.includes("stream")) {
	const coverage = await startCoverage();
	let taken = 0;
	const write = async () => {
		const counts = await coverage.take();
		writeFileSync(`${file}.part`, JSON.stringify({ taken: ++taken, counts }));
		renameSync(`${file}.part`, file);
	};
	process.on("SIGUSR2", () => void write());
	writeFileSync(`${file}.pid`, String(process.pid));
}
