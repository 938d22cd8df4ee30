/** The adapter suite: runs every case against an executable in any language, and tells a person or a program what came of it. */

import { FIELDS, type LengthUnit, readInfo, SUPPORTED, UNITS } from "../info.ts";
import type { AdapterInfo } from "../port.ts";
import { CASES } from "./cases.ts";
import { AdapterProcess } from "./process.ts";
import { type Case, type ConformanceOptions, expect, Rig, SkippedCase } from "./rig.ts";

export type { ConformanceOptions } from "./rig.ts";

export interface CaseResult {
	name: string;
	result: "passed" | "failed" | "skipped";
	/** Why it failed or was skipped. */
	detail?: string;
	ms: number;
}

export interface ConformanceReport {
	command: readonly string[];
	/** Undefined when `info` did not answer. */
	info?: AdapterInfo;
	cases: CaseResult[];
	passed: boolean;
}

export async function runConformance(
	command: readonly string[],
	options: ConformanceOptions = {},
	onResult: (result: CaseResult) => void = () => {},
): Promise<ConformanceReport> {
	const cases: CaseResult[] = [];
	const add = (result: CaseResult) => {
		cases.push(result);
		onResult(result);
	};
	const asked = await askInfo(command, options);
	add(asked.result);
	if (!asked.info) return { command, cases, passed: false };
	for (const each of CASES) {
		if (options.only === undefined || each.name.includes(options.only))
			add(await attempt(each, command, asked.info, options));
	}
	return { command, info: asked.info, cases, passed: cases.every(({ result }) => result !== "failed") };
}

async function timed(name: string, work: () => Promise<void>): Promise<CaseResult> {
	const begun = performance.now();
	const ms = () => Math.round(performance.now() - begun);
	try {
		await work();
		return { name, result: "passed", ms: ms() };
	} catch (cause) {
		const detail = cause instanceof Error ? cause.message : String(cause);
		return { name, result: cause instanceof SkippedCase ? "skipped" : "failed", detail, ms: ms() };
	}
}

async function attempt(
	each: Case,
	command: readonly string[],
	info: AdapterInfo,
	options: ConformanceOptions,
): Promise<CaseResult> {
	const declared: readonly string[] = [...info.supports, ...(info.fields ?? [])];
	const lacking = each.needs.find((need) => !declared.includes(need));
	if (lacking) return { name: each.name, result: "skipped", detail: `it does not declare "${lacking}"`, ms: 0 };
	const rig = new Rig(command, info, options);
	try {
		return await timed(each.name, async () => {
			await each.run(rig);
			await rig.hearOut();
			rig.checkLines();
		});
	} finally {
		await rig.stopAll();
	}
}

async function askInfo(
	command: readonly string[],
	options: ConformanceOptions,
): Promise<{ info?: AdapterInfo; result: CaseResult }> {
	let info: AdapterInfo | undefined;
	const result = await timed("info: one valid JSON object", async () => {
		const process = new AdapterProcess(command, ["info"], options);
		process.closeInput();
		// However short the cases are to be: without it there are none.
		const code = await process.exited(Math.max(options.limitMs ?? 0, INFO_MS));
		const told = `exit code ${String(code)}, stderr: ${process.stderr.slice(-300) || "empty"}`;
		expect(code === 0 && process.lines.length === 1, `not one JSON object and exit code 0 (${told})`);
		const faults = faultsOf(process.lines[0] as object);
		expect(faults.length === 0, faults.join("; "));
		info = process.lines[0] as unknown as AdapterInfo;
	});
	return info ? { info, result } : { result };
}

const INFO_MS = 30_000;

/** The problems of an `info` object. */
export function faultsOf(value: object): string[] {
	const info = value as Partial<Record<keyof AdapterInfo, unknown>>;
	const { textMax, unit } = (info.limits ?? {}) as { textMax?: unknown; unit?: unknown };
	const supports = Array.isArray(info.supports) ? info.supports : [];
	const fields = info.fields === undefined ? [] : Array.isArray(info.fields) ? info.fields : ["?"];
	const settings = Array.isArray(info.settings) ? (info.settings as { name?: unknown }[]) : undefined;
	const isKnown = supports.length > 0 && supports.every((verb) => SUPPORTED.includes(verb));
	const hasVerb = ["send", "stream", "monitor"].some((verb) => supports.includes(verb));
	const canAsk = supports.includes("send") && supports.includes("monitor");
	const rules: [holds: boolean, fault: string][] = [
		[typeof info.channel === "string" && info.channel !== "", '"channel" must be a name'],
		[typeof info.version === "string", '"version" must be a text'],
		[info.protocol === 1, '"protocol" must be 1'],
		[isKnown, `"supports" must be some of ${SUPPORTED.join(", ")}`],
		[hasVerb, '"supports" has no verb'],
		[fields.every((field) => FIELDS.includes(field)), `"fields" may be ${FIELDS.join(", ")}`],
		[!fields.includes("notes") || fields.includes("runId"), '"notes" needs "runId"'],
		[!supports.includes("ask") || canAsk, '"ask" needs "send" and "monitor"'],
		[!fields.includes("intent") || fields.includes("runId"), '"intent" needs "runId"'],
		[Number.isInteger(textMax) && (textMax as number) > 0, '"limits.textMax" must be a positive integer'],
		[UNITS.includes(unit as LengthUnit), `"limits.unit" must be one of ${UNITS.join(", ")}`],
		[settings?.every(({ name }) => typeof name === "string") === true, '"settings" must be a list of {name, …}'],
	];
	const faults = rules.flatMap(([holds, fault]) => (holds ? [] : [fault]));
	const read = faults.length === 0 ? readInfo(value) : undefined;
	return read && "faults" in read ? read.faults : faults;
}
