/** Reads `nexus.yaml` and reports every mistake as `file:line:column: path: what is wrong; what is allowed`. */

import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { CHANNELS } from "@nexus-stream/platforms";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import {
	type Document,
	isMap,
	isScalar,
	LineCounter,
	Pair,
	parseDocument,
	Scalar,
	type YAMLError,
	YAMLMap,
} from "yaml";
import type { z } from "zod";
import { agentProblems, ENGINES, engineNamed } from "../../engine/engine.ts";
import { WEB } from "../../nex/nex.ts";
import { NAME_ALLOWED } from "../../std/config-words.ts";
import { configSchema, type FileConfig, schemaAt } from "./config-schema.ts";

/** `name` is what messages call it. */
export function readConfigFile(file: string, name: string): FileConfig {
	let text: string;
	try {
		text = readFileSync(file, "utf8");
	} catch (cause) {
		const why = cause instanceof Error ? cause.message : String(cause);
		throw new NexusError("config", `${name}: cannot be read (${why}); check the path given with --config`, { cause });
	}
	const base = dirname(file);
	return parseConfig(text, name, configSchema, (path) => isFile(resolve(base, path)));
}

/** `isReadable`: whether a file that the configuration names is there. */
export function parseConfig(
	text: string,
	file: string,
	schema = configSchema,
	isReadable: (path: string) => boolean = isFile,
): FileConfig {
	const lines = new LineCounter();
	const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
	const at = (offset: number) => {
		const { line, col } = lines.linePos(offset);
		return `${file}:${line}:${col}`;
	};
	const broken = [...document.errors, ...document.warnings];
	if (broken.length > 0) {
		const said = broken.map((error) => `${at(error.pos[0])}: not valid YAML: ${yamlWords(error)}`);
		throw new NexusError("config", said.join("\n"));
	}
	respell(document);
	// An empty file, or one with comments only, sets nothing.
	const value = valuesOf(document, file) ?? {};
	// Compiled checks pay off for many values; this is one.
	const result = schema.safeParse(value, { jitless: true });
	const said = result.success
		? [...unknownChannels(result.data, document), ...wrongAgents(result.data, document, isReadable)]
		: result.error.issues.flatMap((issue) => explain(issue, value, document, schema));
	if (result.success && said.length === 0) return result.data;
	said.sort((a, b) => a.offset - b.offset);
	throw new NexusError("config", said.map(({ offset, message }) => `${at(offset)}: ${message}`).join("\n"));
}

/** A few lines of aliases of aliases stand for gigabytes: the library stops counting and throws. */
function valuesOf(document: Document, file: string): unknown {
	try {
		return document.toJS({ maxAliasCount: ALIASES_MAX });
	} catch (cause) {
		throw new NexusError("config", `${file}: its aliases (*name) cannot be resolved: ${wordsOf(cause)}`, { cause });
	}
}

const ALIASES_MAX = 100;

/** The library speaks to programmers here. */
const yamlWords = ({ code, message }: YAMLError) =>
	code === "MULTIPLE_DOCS" ? "the file holds several documents; remove the line ---" : message;

interface Mistake {
	offset: number;
	message: string;
}

/** A value below these keys may be a secret in the wrong place: it must not end up in a terminal's scroll-back or a log. */
const SECRET = new Set(["token", "apiKeyEnv", "settings", "env", "headers"]);

function explain(issue: z.core.$ZodIssue, value: unknown, document: Document, schema: z.ZodType): Mistake[] {
	const path = issue.path;
	const { allowed, keys } = schemaAt(schema, path);
	if (issue.code === "unrecognized_keys") {
		return issue.keys.map((key) => {
			const near = nearest(key, keys);
			const hint = near === undefined ? `allowed: ${keys.join(", ")}` : `did you mean "${near}"?`;
			return { offset: offsetOf(document, path, key), message: `${[...path, key].join(".")}: unknown key; ${hint}` };
		});
	}
	if (issue.code === "invalid_key") {
		const above = path.slice(0, -1);
		const message = `${path.join(".")}: not a name; allowed: ${NAME_ALLOWED}`;
		return [{ offset: offsetOf(document, above, String(path.at(-1))), message }];
	}
	const where = path.length === 0 ? "the file" : path.join(".");
	const expected = allowed ?? `a map with the keys ${keys.join(", ")}`;
	const found = path.some((key) => SECRET.has(String(key))) ? "this value" : show(valueAt(value, path));
	return [{ offset: offsetOf(document, path), message: `${where}: ${found} is not allowed; allowed: ${expected}` }];
}

/** Settings under a misspelt channel name, such as access rules, would silently apply to nothing. */
function unknownChannels({ channels = {} }: FileConfig, document: Document): Mistake[] {
	const known: readonly string[] = [...CHANNELS, WEB];
	const strange = Object.entries(channels).filter(([name, { command }]) => !command && !known.includes(name));
	return strange.map(([name]) => {
		const near = nearest(name, known);
		const hint = near === undefined ? `bundled: ${CHANNELS.join(", ")}` : `did you mean "${near}"?`;
		const message = `channels.${name}: no adapter of that name; ${hint} (your own needs its \`command\`)`;
		return { offset: offsetOf(document, ["channels"], name), message };
	});
}

/** The Broker's own limits, used where the file sets none. */
const TOOL_MS = 600_000;

function wrongAgents(config: FileConfig, document: Document, isFile: (path: string) => boolean): Mistake[] {
	const found = typeof config.engine === "string" ? engineNamed(config.engine, config) : undefined;
	const { agents, phases, channels, broker } = config;
	const problems = agentProblems({
		engine: found && { name: found.entry.name, section: found.entry.section, limits: found.section as object },
		enginesWithAgents: ENGINES.flatMap(({ name, hasAgents }) => (hasAgents ? [name] : [])),
		agents,
		phases,
		channels,
		isFile,
		toolMs: broker?.toolMs ?? TOOL_MS,
	});
	return problems.map(({ path, key, message }) => ({ offset: offsetOf(document, path, key), message }));
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
	path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], value);

function show(value: unknown): string {
	if (typeof value === "string") return value.length > 60 ? "a text this long" : JSON.stringify(value);
	if (Array.isArray(value)) return "a list";
	if (typeof value === "object" && value !== null) return "a map";
	return String(value);
}

/** Where a path's value (or one key in it) stands in the text; the nearest node above it when it has none. */
function offsetOf(document: Document, path: readonly PropertyKey[], key?: string): number {
	const node = path.length === 0 ? document.contents : document.getIn(path, true);
	if (key !== undefined && isMap(node)) {
		const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
		if (isScalar(pair?.key) && pair.key.range) return pair.key.range[0];
	}
	const range = (node as { range?: [number, number, number] | null } | undefined)?.range;
	if (range) return range[0];
	return path.length === 0 ? 0 : offsetOf(document, path.slice(0, -1), String(path.at(-1)));
}

/** The allowed key that is at most two typing mistakes away. */
function nearest(key: string, keys: readonly string[]): string | undefined {
	let best: { key: string; distance: number } | undefined;
	for (const candidate of keys) {
		const distance = editDistance(key.toLowerCase(), candidate.toLowerCase());
		// A word as short as the number of mistakes would match anything.
		const most = Math.min(Math.max(2, Math.floor(candidate.length / 4)), key.length - 1, candidate.length - 1);
		if (distance <= most && distance < (best?.distance ?? Infinity)) best = { key: candidate, distance };
	}
	return best?.key;
}

function editDistance(a: string, b: string): number {
	let row = Array.from({ length: b.length + 1 }, (_, index) => index);
	for (let i = 1; i <= a.length; i++) {
		const next = [i];
		for (let j = 1; j <= b.length; j++) {
			const swap = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
			next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, swap);
		}
		row = next;
	}
	return row[b.length]!;
}

/** Accepts the spellings of keys that people know from similar software: `adapters` is `channels`; `streaming.typing_interval_ms` is `typing.intervalMs`. Positions in the file stay as they are. A file with both spellings keeps both: the schema then names the wrong one. */
function respell(document: Document): void {
	const root = document.contents;
	if (!isMap(root)) return;
	rename(root, "adapters", "channels");
	const channels = root.get("channels");
	if (!isMap(channels)) return;
	for (const { value: channel } of channels.items) if (isMap(channel)) moveTypingInterval(channel);
}

function moveTypingInterval(channel: YAMLMap): void {
	const streaming = channel.get("streaming");
	if (!isMap(streaming)) return;
	const interval = pairOf(streaming, "typing_interval_ms");
	const typing = channel.get("typing") ?? new YAMLMap();
	if (!interval || !isMap(typing) || typing.has("intervalMs")) return;
	streaming.items.splice(streaming.items.indexOf(interval), 1);
	typing.items.push(new Pair(renamed(interval.key as Scalar, "intervalMs"), interval.value));
	if (!channel.has("typing")) channel.items.push(new Pair(renamed(interval.key as Scalar, "typing"), typing));
}

function rename(map: YAMLMap, from: string, to: string): void {
	const pair = map.has(to) ? undefined : pairOf(map, from);
	if (pair) pair.key = renamed(pair.key as Scalar, to);
}

const pairOf = (map: YAMLMap, name: string): Pair | undefined =>
	map.items.find(({ key }) => isScalar(key) && key.value === name);

/** It stands where the other stood, for messages about it. */
function renamed({ range }: Scalar, name: string): Scalar {
	const key = new Scalar(name);
	if (range) key.range = range;
	return key;
}
