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

/** The first row is the head. */
export function markdown(all: readonly (readonly string[])[]): string {
	const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
	const line = (row: readonly string[]) =>
		`| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
	const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
	return [line(all[0] ?? []), rule, ...all.slice(1).map(line)].join("\n");
}
