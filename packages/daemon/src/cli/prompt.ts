/** Approvals and questions of a followed run: put to the person at the terminal, or printed with the command that decides them. */

import { createInterface } from "node:readline/promises";
import { decodeToolStatus, type Frame, type ToolApprovalStatus, toNexusError } from "@nexus-stream/protocol";
import type { CommandContext } from "./command.ts";

type Kind = "approval" | "question";

export function createPrompter(context: CommandContext) {
	const { host, terminal } = context;
	const isPerson = host.stdin.isTTY === true && host.stderr.isTTY === true;
	const runs = new Map<string, string>();
	/** One at a time, in order. */
	let last = Promise.resolve();
	const open = new Map<string, AbortController>();

	const began = (runId: string, kind: Kind, asked: ToolApprovalStatus) => {
		if (open.has(asked.id)) return;
		const withdrawn = new AbortController();
		open.set(asked.id, withdrawn);
		last = last
			.then(() => put(context, isPerson, runId, kind, asked, withdrawn.signal))
			.catch((cause: unknown) => terminal.note(`nexus: ${toNexusError(cause).message}`))
			.finally(() => open.delete(asked.id));
	};
	const ended = ({ id, state, by }: ToolApprovalStatus) => {
		open.get(id)?.abort();
		const who = by === undefined || by === "nexus" ? "" : ` by ${by}`;
		terminal.note(terminal.dim(`[${id}] ${state}${who}`));
	};
	return {
		frame(frame: Frame): void {
			if (frame.type === "stream.begin" && frame.modality === "tool") runs.set(frame.message_id, frame.run_id);
			if (frame.type === "stream.end") runs.delete(frame.message_id);
			if (frame.type === "stream.end" && frame.final) for (const one of open.values()) one.abort();
			if (frame.type !== "stream.chunk") return;
			const runId = runs.get(frame.message_id);
			const status = runId === undefined ? undefined : decodeToolStatus(frame.payload);
			for (const kind of ["approval", "question"] as const) {
				const asked = status?.[kind];
				if (asked?.state === "pending") began(runId!, kind, asked);
				else if (asked) ended(asked);
			}
		},
		/** Withdraws the open question. */
		close(): void {
			for (const one of open.values()) one.abort();
		},
	};
}

async function put(
	context: CommandContext,
	isPerson: boolean,
	runId: string,
	kind: Kind,
	asked: ToolApprovalStatus,
	signal: AbortSignal,
): Promise<void> {
	const { client, terminal } = context;
	const { approvals } = await client.api.approvals({ state: "pending" });
	// The followed run may have ended long ago.
	if (signal.aborted || !approvals.some(({ id, run_id }) => id === asked.id && run_id === runId)) return;
	const head = kind === "approval" ? `needs approval: ${asked.text}` : `asks: ${asked.text}`;
	terminal.note(terminal.paint("yellow", `[${asked.id}] ${head}`));
	if (asked.because !== undefined) terminal.note(`  because ${asked.because}`);
	if (asked.choices) terminal.note(`  ${asked.choices.map((choice, n) => `${n + 1}) ${choice}`).join("  ")}`);
	if (!isPerson) {
		const commands =
			kind === "approval"
				? `nexus approve ${asked.id}, or nexus deny ${asked.id}`
				: `nexus answer ${asked.id} <text>${asked.choices ? " (or a number)" : ""}`;
		terminal.note(`  decide with: ${commands}`);
		return;
	}
	await (kind === "approval" ? askApproval : askQuestion)(context, runId, asked, signal);
}

async function askApproval(
	context: CommandContext,
	run: string,
	{ id, once }: ToolApprovalStatus,
	signal: AbortSignal,
): Promise<void> {
	const ways = once ? "[y]es, [n]o" : "[y]es, [n]o, [a]llow for this session";
	const line = await question(context, `Approve ${id}? ${ways}: `, signal);
	const answer = line?.toLowerCase();
	if (answer === undefined) return;
	const isYes = ["y", "yes", "a", "allow"].includes(answer);
	const isNo = ["n", "no"].includes(answer);
	if (!isYes && !isNo) {
		context.terminal.note(`  not decided; decide with nexus approve ${id}, or nexus deny ${id}`);
		return;
	}
	const remember = answer.startsWith("a");
	await context.client.api.decideApproval(run, id, {
		decision: isYes ? "approve" : "deny",
		remember: remember || undefined,
	});
}

async function askQuestion(
	context: CommandContext,
	run: string,
	asked: ToolApprovalStatus,
	signal: AbortSignal,
): Promise<void> {
	const line = await question(context, `Answer ${asked.id}: `, signal);
	if (line === undefined || line === "") return;
	await context.client.api.answerQuestion(run, asked.id, { answer: chosenOf(asked.choices, line) });
}

/** A choice may be named by its number. */
export const chosenOf = (choices: readonly string[] | undefined, text: string): string =>
	(/^\d{1,2}$/.test(text) && !choices?.includes(text) ? choices?.[Number(text) - 1] : undefined) ?? text;

/** The terminal edits the line: Ctrl-C stays what it is for the command. Undefined when the question was withdrawn, or nothing can be typed. */
async function question({ host }: CommandContext, prompt: string, signal: AbortSignal): Promise<string | undefined> {
	const lines = createInterface({ input: host.stdin, output: host.stderr, terminal: false });
	const gone = new AbortController();
	lines.once("close", () => gone.abort());
	try {
		return (await lines.question(prompt, { signal: AbortSignal.any([signal, gone.signal]) })).trim();
	} catch (cause) {
		if ((cause as Error).name !== "AbortError") throw cause;
		host.stderr.write("\n");
		return undefined;
	} finally {
		lines.close();
	}
}
