/** PROTOCOL.md and the code say the same: every rule that is cited exists, every table in it is the table of the code. */

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import {
	CHUNK_BYTES,
	ERROR_TABLE,
	LOG_KINDS,
	STREAM_ENDPOINTS,
	STREAM_PROCEDURES,
	VIOLATION_RULE,
} from "../../packages/protocol/src/protocol.ts";

const root = path.join(import.meta.dirname, "../..");
const text = fs.readFileSync(path.join(root, "PROTOCOL.md"), "utf8");
/** A rule is a paragraph or list item that begins with its id in bold; an invariant is a row of the table. */
const rules = [...text.matchAll(/^\*\*(P\d+\.\d+)\b/gm)].map(([, id]) => id!);
const invariants = [...text.matchAll(/^\| (I\d+) \|/gm)].map(([, id]) => id!);

const filesIn = (folder: string): string[] =>
	fs
		.readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
		.filter((file) => /^(?!.*\bdist\/).*\.tsx?$/.test(file))
		.map((file) => path.join(folder, file));

test("rules are numbered without a hole in each section, invariants from I1 to I12", () => {
	for (const section of new Set(rules.map((id) => id.split(".")[0]!))) {
		const numbers = rules.filter((id) => id.startsWith(`${section}.`)).map((id) => Number(id.split(".")[1]));
		expect(numbers).toEqual(numbers.map((_, at) => at + 1));
	}
	expect(invariants).toEqual(Array.from({ length: 12 }, (_, at) => `I${at + 1}`));
});

test("what sources and tests cite exists", () => {
	const known = new Set([...rules, ...invariants]);
	const unknown = [...filesIn("packages"), ...filesIn("test")].flatMap((file) => {
		const cited = fs.readFileSync(path.join(root, file), "utf8").match(/\b(?:P\d\.\d+|I\d+(?=[:,)]))/g) ?? [];
		return cited.filter((id) => !known.has(id)).map((id) => `${file} cites ${id}`);
	});
	expect(unknown).toEqual([]);
});

test("every violation that verify reports breaks a rule that is written down", () => {
	for (const [kind, rule] of Object.entries(VIOLATION_RULE)) {
		expect(rules).toContain(rule);
		expect(text).toContain(`\`${kind}\``);
	}
});

test("P7.1: the error table", () => {
	const rows = [...text.matchAll(/^\| `([a-z_]+)` \| (\d+) \| (\d+) \| (\d+) \|/gm)].map(([, code, ...numbers]) => [
		code,
		numbers.map(Number),
	]);
	expect(rows).toEqual(Object.entries(ERROR_TABLE));
});

test("P5.1: the close-mode table", () => {
	const rows = [...text.matchAll(/^\| (?:log `(\w+)`|`((?:GET|POST) [^`]+|[\w.]+\/\w+)`) \| ([ABCD]) \|/gm)].map(
		([, log, endpoint, mode]) => [log ?? endpoint, mode],
	);
	const declared = [LOG_KINDS, STREAM_ENDPOINTS, STREAM_PROCEDURES].flatMap((table) => Object.entries(table));
	expect(rows).toEqual(declared.map(([name, { closes }]) => [name, closes]));
});

test("P1.18: the table of chunk sizes", () => {
	const rows = [...text.matchAll(/^\| ([a-z]+) \| (\d+|never cut) \|/gm)].map(([, modality, bytes]) => [
		modality,
		bytes === "never cut" ? Infinity : Number(bytes),
	]);
	expect(rows).toEqual(Object.entries(CHUNK_BYTES));
});
