/** Tables of everything that is still over a limit, from left.json. They can only shrink; when all are empty, this file and the JSON are deleted. */

import { readFileSync } from "node:fs";
import { ROOT } from "./files.ts";
import * as measure from "./measures.ts";
import { wordCounts, wordsBelow } from "./words.ts";

type Left = Readonly<Record<keyof ReturnType<typeof measureAll>, measure.Table>>;

export const left = JSON.parse(readFileSync(new URL("left.json", import.meta.url), "utf8")) as Left;

export function measureAll() {
	const sources = measure.readSources();
	return {
		longFunctions: measure.longFunctions(sources),
		longFiles: measure.longFiles(sources),
		splinters: measure.splinters(sources),
		crowdedFolders: measure.crowdedFolders(),
		wideDoors: measure.wideDoors(sources),
		starExports: measure.starExports(sources),
		wideInterfaces: measure.wideInterfaces(sources),
		waits: measure.waits(sources),
		testPaths: measure.testPaths(sources),
		sharedTypeNames: measure.sharedTypeNames(sources),
		words: wordCounts(wordsBelow(ROOT)),
	};
}
