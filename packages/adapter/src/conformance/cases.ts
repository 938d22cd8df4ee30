/** The cases of the adapter suite: each says one promise of docs/adapter-protocol.md and tries it on a real process. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ASK_CASES } from "./ask-cases.ts";
import type { AdapterLine, AdapterProcess } from "./process.ts";
import { type Case, expect, expectType, type Rig, repeated, SkippedCase, WORDS } from "./rig.ts";
import { STREAM_CASES } from "./stream-cases.ts";

async function stopped(process: AdapterProcess, limitMs: number): Promise<void> {
	process.closeInput();
	const code = await process.exited(limitMs);
	expect(code !== undefined, `it has not ended ${limitMs} ms after its input`);
	expect(code === 0, `it ended with code ${String(code)} after its input, instead of 0`);
}

/** The first message of a long line was sent by a process that died; another one says the rest. */
async function resumedLine(rig: Rig): Promise<void> {
	const { textMax } = rig.info.limits;
	const text = repeated(WORDS, Math.min(textMax * 2 + 100, 200_000));
	if (text.length <= textMax) throw new SkippedCase(`textMax ${textMax} is more than this suite sends`);
	const line = rig.line(text, 50);
	const { nonce } = line;
	const mine = (said: AdapterLine) => String(said.nonce).startsWith(nonce);
	const isSent = (said: AdapterLine) => said.type === "message_sent" && mine(said);
	const first = rig.start("send");
	first.say({ type: "send", ...line });
	const head = await first.hear("message_sent", isSent, rig.limitMs);
	expect(head.final === false, "a text of more than twice the limit went in one message");
	expect(typeof head.chars === "number" && head.chars > 0, "message_sent of a piece does not say its chars");
	await first.kill();
	const next = rig.start("send");
	const rest = { ...line, from: head.to, done: { pieces: 1, chars: head.chars } };
	next.say({ type: "find", ...rest });
	const found = await next.hear("found", (said) => said.type === "found" && mine(said), rig.limitMs);
	// This platform cannot tell: nothing may be said again.
	if (found.known !== true) return;
	const told = next.lines.filter(isSent);
	const isRepeated = told.some((said) => said.nonce === nonce);
	expect(!isRepeated, "it reported the part that was already sent");
	if (found.messageId !== undefined) return;
	const last = told.at(-1) ?? head;
	const done = { pieces: told.length + 1, chars: last.chars };
	next.say({ type: "send", ...line, from: last.to, done });
	const isEnd = (said: AdapterLine) => mine(said) && (said.final === true || said.type === "delivery_error");
	const end = await next.hear("the end of the line", isEnd, rig.limitMs);
	expectType(end, "message_sent");
	const sent = next.lines.filter(isSent).slice(told.length);
	expect(sent[0]?.nonce === `${nonce}.${done.pieces + 1}`, "the rest does not go on with the next nonce");
	expect(sent[0].from === last.to && end.to === line.to, "the rest does not begin where the part ended");
}

/** The daemon keeps its notes, and has one of them not on record yet. */
async function unansweredNote(rig: Rig): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), "nexus-notes-"));
	try {
		const files = { NEXUS_STATE_FILE: join(folder, "state.json"), NEXUS_NOTES_FILE: join(folder, "notes") };
		const process = rig.start("send", files);
		const sent = rig.line("Careful now.");
		process.say({ type: "send", ...sent });
		const isEnd = (line: AdapterLine) =>
			(line.type === "message_sent" || line.type === "delivery_error") && line.nonce === sent.nonce;
		const first = await process.hear("note", (line) => line.type === "note" || isEnd(line), rig.limitMs);
		if (first.type !== "note") throw new SkippedCase("it noted nothing before it sent");
		const early = () => process.lines.some(isEnd);
		expect(!(await process.until(early, 400)), "a message was sent before its note was answered");
		const answer = (line: AdapterLine) => {
			if (line.type === "note" || line.type === "state") process.say({ type: "noted", id: String(line.id) });
		};
		process.lines.forEach(answer);
		process.onLine = answer;
		const end = await process.hear("message_sent", isEnd, rig.limitMs);
		expectType(end, "message_sent");
		await stopped(process, rig.momentMs);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

async function sentLines(rig: Rig): Promise<void> {
	const process = rig.start("send");
	for (const text of ["One message.", repeated(WORDS, Math.min(rig.info.limits.textMax * 2 + 100, 200_000))]) {
		const line = rig.line(text, 50);
		const { nonce } = line;
		process.say({ type: "send", ...line });
		const mine = (said: AdapterLine) => String(said.nonce).startsWith(nonce);
		const isEnd = (said: AdapterLine) => mine(said) && (said.final === true || said.type === "delivery_error");
		const end = await process.hear("message_sent", isEnd, rig.limitMs);
		expectType(end, "message_sent");
		const sent = process.lines.filter((said) => said.type === "message_sent" && mine(said));
		expect(sent[0]?.nonce === nonce, "the first message has another nonce than its line");
		expect(sent[0]?.from === 50 && end.to === line.to, "the positions of the line are not covered");
		for (const [n, piece] of sent.entries()) {
			if (n === 0) continue;
			const named = `${nonce}.${n + 1}`;
			expect(piece.nonce === named, `message ${n + 1} of a line does not have the nonce <nonce>.${n + 1}`);
			expect(piece.from === sent[n - 1]?.to, "the positions of a line's messages are not contiguous");
		}
	}
	await stopped(process, rig.momentMs);
	const finals = process.lines.filter((line) => line.type === "message_sent" && line.final === true).length;
	expect(finals === 2, `${finals} messages are final, for 2 lines`);
}

async function foundLines(rig: Rig): Promise<void> {
	if (rig.info.reconcile === undefined) throw new SkippedCase('it does not declare "reconcile", so it is never asked');
	const process = rig.start("send");
	const hear = (type: string, { nonce }: { nonce: string }) =>
		process.hear(type, (said) => said.type === type && said.nonce === nonce, rig.limitMs);
	/** Asks for the line's message. */
	const find = async (line: ReturnType<Rig["line"]>) => {
		process.say({ type: "find", ...line });
		const answer = await hear("found", line);
		const { delivery = line.delivery } = answer;
		expect(
			delivery === line.delivery,
			`found names the delivery ${JSON.stringify(delivery)} instead of ${line.delivery}`,
		);
		return answer;
	};
	const line = rig.line(`Find me: ${rig.fresh()}`, 50);
	process.say({ type: "send", ...line });
	const sent = await hear("message_sent", line);
	const found = await find(line);
	const isDenied = found.known === true && found.messageId === undefined;
	expect(!isDenied, "it is certain that a message it has sent is not there");
	expect(found.known !== true || found.messageId === sent.messageId, "it found another message");
	const absent = await find(rig.line(`Never sent: ${rig.fresh()}`, 50));
	expect(absent.messageId === undefined, "it found a message that was never sent");
}

const OTHER_CASES: Case[] = [
	{
		name: "the end of its input stops it with exit code 0",
		needs: ["stream"],
		run: (rig) => stopped(rig.start("stream"), rig.momentMs),
	},
	{
		name: "the end of its input after an answer's end: the answer is finished first",
		needs: ["stream"],
		async run(rig) {
			const process = rig.start("stream");
			const runId = rig.fresh();
			process.say({ type: "stream_start", runId, sessionLabel: "conformance", target: rig.target });
			process.say({ type: "token", text: "The last words." });
			process.say({ type: "stream_end", runId, final: true });
			await stopped(process, rig.momentMs);
			const isComplete = process.lines.some((line) => line.type === "delivery_complete");
			expect(isComplete, "it ended without delivery_complete");
		},
	},
	{ name: "send: a message, and a long one in pieces with one final", needs: ["send"], run: sentLines },
	{
		name: "send: garbage is skipped and reported on stderr, unknown types are ignored",
		needs: ["send"],
		async run(rig) {
			const process = rig.start("send");
			const line = rig.line("Still here.");
			process.raw("this is not json\n[1,2]\n\n7\n{broken\n");
			process.say({ type: "of_the_future", nonce: line.nonce, target: rig.target });
			process.say({ type: "send", ...line });
			expectType(await process.hear("message_sent", (said) => said.nonce === line.nonce, rig.limitMs), "message_sent");
			await rig.hearOut();
			expect(process.stderr.trim() !== "", "nothing on stderr tells of the garbage");
		},
	},
	{ name: "find: a message that was sent is found, one that was not is not", needs: ["send"], run: foundLines },
	{
		name: "send and find: when a part is out, only the rest is looked for and said",
		needs: ["pieces"],
		run: resumedLine,
	},
	{ name: "notes: nothing is sent before its note is answered", needs: ["send", "notes"], run: unansweredNote },
	{
		name: "monitor: the end of its input stops it with exit code 0",
		needs: ["monitor"],
		run: (rig) => stopped(rig.start("monitor"), rig.momentMs),
	},
	{
		name: "health: one JSON object, and an exit code that agrees with it",
		needs: ["health"],
		async run(rig) {
			const process = rig.start("health");
			process.closeInput();
			const code = await process.exited(rig.limitMs);
			const [report] = process.lines as unknown as { ok?: unknown; detail?: unknown }[];
			expect(process.lines.length === 1, `${process.lines.length} lines instead of one`);
			expect(typeof report?.ok === "boolean" && typeof report.detail === "string", `not {"ok": …, "detail": "…"}`);
			expect((code === 0) === report.ok, `ok is ${String(report.ok)} and the exit code ${String(code)}`);
		},
	},
	{
		name: "an unknown verb is refused",
		needs: [],
		async run(rig) {
			const process = rig.start("frobnicate");
			process.closeInput();
			const code = await process.exited(rig.limitMs);
			expect(typeof code === "number" && code !== 0, `exit code ${String(code)}`);
		},
	},
];

export const CASES: readonly Case[] = [...STREAM_CASES, ...OTHER_CASES, ...ASK_CASES];
