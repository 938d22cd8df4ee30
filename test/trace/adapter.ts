/** Loaded before an adapter (`--import`): writes the counts of its process into a file whenever the process gets SIGUSR2. Only for one verb. */

import { renameSync, writeFileSync } from "node:fs";
import { startCoverage } from "./coverage.ts";

const { searchParams } = new URL(import.meta.url);
const file = searchParams.get("file");
if (file !== null && process.argv.includes(searchParams.get("verb") ?? "")) {
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
