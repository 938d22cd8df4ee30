/** The termination strategy that the configuration names: one of ours, or a module of the user's. */

import { resolve } from "node:path";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import { importWithin } from "../../std/import-within.ts";
import type { ReasonActConfig } from "./config.ts";
import { STRATEGIES, type TerminationStrategy } from "./termination.ts";

export async function strategyOf(
	choice: ReasonActConfig["termination"] = "enforcing",
	base: string,
): Promise<TerminationStrategy> {
	if (typeof choice === "string") return STRATEGIES[choice];
	const { module } = choice;
	const refuse = (found: string, cause?: unknown) =>
		new NexusError(
			"config",
			`\`reasonAct.termination\`: ${module} ${found}. It exports \`default { name, decide(end) }\`, and decide returns { type: "end" | "retry" | "route" | "fail", … }`,
			{ cause },
		);
	const exports = await importWithin(resolve(base, module)).catch((cause: unknown) => {
		throw refuse(`cannot be loaded: ${wordsOf(cause)}`, cause);
	});
	const found = (exports.default ?? exports.strategy) as Partial<TerminationStrategy> | null | undefined;
	if (typeof found?.decide !== "function") throw refuse("has no `decide`");
	if (typeof found.name !== "string" || found.name === "") throw refuse("has no `name`");
	return found as TerminationStrategy;
}
