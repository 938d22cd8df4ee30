/** Measures the published sources against the limits: each function returns a table from a place to its number. */

import { dirname } from "node:path/posix";
import * as budget from "./budget.ts";
import { filesBelow, isPublished, placeOf, ROOT } from "./files.ts";
import { importsOf, targetOf } from "./imports.ts";
import { type Shape, shapeOf } from "./shape.ts";

export type Table = Readonly<Record<string, number>>;

export interface Source {
	readonly place: string;
	readonly text: string;
	readonly shape: Shape;
}

/** Hand-written TypeScript of all packages. */
export const readSources = (root = ROOT): Source[] =>
	[...filesBelow(root, /\.tsx?$/)]
		.filter(([file]) => isPublished(file))
		.map(([file, text]) => ({ place: placeOf(file), text, shape: shapeOf(file, text) }));

const lineCount = (text: string): number => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

/** Sorted by key; where a key comes twice, the larger number counts. */
function table(rows: Iterable<readonly [string, number]>): Table {
	const largest = new Map<string, number>();
	for (const [key, value] of rows) largest.set(key, Math.max(value, largest.get(key) ?? 0));
	return Object.fromEntries([...largest].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function counts(keys: Iterable<string>): Map<string, number> {
	const counted = new Map<string, number>();
	for (const key of keys) counted.set(key, (counted.get(key) ?? 0) + 1);
	return counted;
}

export const longFunctions = (sources: readonly Source[]): Table =>
	table(
		sources.flatMap(({ place, shape }) =>
			shape.functions
				.filter(({ lines }) => lines > budget.FUNCTION_LINES_MAX)
				.map(({ name, lines }) => [`${place} ${name}`, lines] as const),
		),
	);

export const longFiles = (sources: readonly Source[]): Table =>
	table(
		sources
			.map(({ place, text }) => [place, lineCount(text)] as const)
			.filter(([, lines]) => lines > budget.FILE_LINES_MAX),
	);

/** Short files that only one file of the same folder imports. */
export function splinters(sources: readonly Source[]): Table {
	const importers = new Map<string, Set<string>>();
	for (const { place, text } of sources) {
		for (const specifier of importsOf(text)) {
			const target = targetOf(place, specifier);
			if (target !== undefined) importers.set(target, (importers.get(target) ?? new Set()).add(place));
		}
	}
	const isSplinter = ({ place, text }: Source): boolean => {
		const [only, ...others] = importers.get(place) ?? [];
		return (
			only !== undefined &&
			others.length === 0 &&
			dirname(only) === dirname(place) &&
			lineCount(text) < budget.FILE_LINES_MIN &&
			!budget.SIBLING_FILES.test(place)
		);
	};
	return table(sources.filter(isSplinter).map(({ place, text }) => [place, lineCount(text)]));
}

/** Files of all kinds and folders count as entries. */
export function crowdedFolders(root = ROOT): Table {
	const entries = new Map<string, Set<string>>();
	for (const file of filesBelow(root, /./).keys()) {
		if (!isPublished(file)) continue;
		let path = placeOf(file);
		while (path.includes("/")) {
			entries.set(dirname(path), (entries.get(dirname(path)) ?? new Set()).add(path));
			path = dirname(path);
		}
	}
	return table(
		[...entries]
			.map(([folder, names]) => [folder, names.size] as const)
			.filter(([, size]) => size > budget.FOLDER_ENTRIES_MAX),
	);
}

export const wideDoors = (sources: readonly Source[]): Table =>
	table(
		sources
			.map(({ place, shape }) => [place, shape.reExports] as const)
			.filter(([place, names]) => names > budget.DOOR_NAMES_MAX && !(place in budget.WIDE_DOORS)),
	);

const some = (sources: readonly Source[], fact: "starExports" | "waits" | "testPaths"): Table =>
	table(sources.map(({ place, shape }) => [place, shape[fact]] as const).filter(([, count]) => count > 0));

/** `export *` hides what a door lets out. */
export const starExports = (sources: readonly Source[]): Table => some(sources, "starExports");

export const testPaths = (sources: readonly Source[]): Table => some(sources, "testPaths");

/** `setTimeout`, `2 **` and a bare `clock.after` in a Promise: one place has them, with limits and jitter. */
export const waits = (sources: readonly Source[]): Table =>
	some(
		sources.filter(({ place }) => !(place in budget.WAITING_FILES)),
		"waits",
	);

export const wideInterfaces = (sources: readonly Source[]): Table =>
	table(
		sources.flatMap(({ place, shape }) =>
			shape.interfaces
				.map(({ name, methods }) => [`${place} ${name}`, methods] as const)
				.filter(([key, methods]) => methods > budget.INTERFACE_METHODS_MAX && !(key in budget.WIDE_INTERFACES)),
		),
	);

/** Exported types that several files define, with how many do. */
export const sharedTypeNames = (sources: readonly Source[]): Table =>
	table([...counts(sources.flatMap(({ shape }) => shape.types))].filter(([, files]) => files > 1));

export function folderLines(sources: readonly Source[]): Table {
	const lines = new Map<string, number>();
	for (const { place, text } of sources) {
		const folder = place.includes("/") ? place.slice(0, place.indexOf("/")) : ".";
		lines.set(folder, (lines.get(folder) ?? 0) + lineCount(text));
	}
	return table(lines);
}
