/** A figure: what was measured, what the bare server reached in the same run, the goal, and whether it is met. */

export interface Figure {
	name: string;
	unit: string;
	value: number;
	/** The same of the baseline, measured in turns with it. */
	bare?: number;
	/** The name of the baseline, when it is not the bare server. */
	against?: string;
	goal?: Goal;
}

/** `ratio` is value ÷ bare. */
export interface Goal {
	of: "value" | "ratio";
	atLeast?: number;
	atMost?: number;
}

const ratioOf = ({ value, bare }: Figure) => (bare === undefined ? undefined : value / bare);

export function verdict(figure: Figure): "pass" | "short" | "" {
	const { goal } = figure;
	if (!goal) return "";
	const measured = goal.of === "value" ? figure.value : (ratioOf(figure) ?? Number.NaN);
	return measured >= (goal.atLeast ?? -Infinity) && measured <= (goal.atMost ?? Infinity) ? "pass" : "short";
}

export function number(value: number): string {
	if (Number.isNaN(value)) return "–";
	const digits = Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
	return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

function goalText({ goal, unit }: Figure): string {
	if (!goal) return "";
	const sign = goal.atLeast === undefined ? "≤" : "≥";
	return `${sign} ${number(goal.atLeast ?? goal.atMost ?? 0)}${goal.of === "ratio" ? "×" : ` ${unit}`}`;
}

/** A table for people. */
export function table(figures: readonly Figure[]): string {
	const rows = figures.map((figure) => {
		const ratio = ratioOf(figure);
		const bare =
			figure.bare === undefined ? "" : `${number(figure.bare)}${figure.against ? ` (${figure.against})` : ""}`;
		return [
			figure.name,
			`${number(figure.value)} ${figure.unit}`,
			bare,
			ratio === undefined ? "" : `${number(ratio)}×`,
			goalText(figure),
			verdict(figure),
		];
	});
	return markdown([["measurement", "Nexus", "bare", "ratio", "goal", ""], ...rows]);
}

/** A figure of two builds, measured in turns: one value of each per turn. */
export interface Comparison {
	name: string;
	unit: string;
	here: number[];
	there: number[];
}

/** Adds one turn of both builds to what earlier turns measured, by name. */
export function compare(all: Map<string, Comparison>, here: readonly Figure[], there: readonly Figure[]): void {
	for (const { name, unit, value } of here) {
		const other = there.find((figure) => figure.name === name);
		if (!other) continue;
		const { here: before = [], there: otherBefore = [] } = all.get(name) ?? {};
		all.set(name, { name, unit, here: [...before, value], there: [...otherBefore, other.value] });
	}
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The ratio of the means, and the ratios of the turns, which show the noise. */
export function comparisonTable(comparisons: ReadonlyMap<string, Comparison>): string {
	const rows = [...comparisons.values()].map(({ name, unit, here, there }) => [
		name,
		`${number(mean(here))} ${unit}`,
		`${number(mean(there))} ${unit}`,
		`${number(mean(here) / mean(there))}×`,
		here.map((value, turn) => number(value / there[turn]!)).join(" · "),
	]);
	return markdown([["measurement", "this build", "the other", "ratio", "by turn"], ...rows]);
}

/** The first row is the head. */
export function markdown(all: readonly (readonly string[])[]): string {
	const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
	const line = (row: readonly string[]) =>
		`| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
	const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
	return [line(all[0] ?? []), rule, ...all.slice(1).map(line)].join("\n");
}
