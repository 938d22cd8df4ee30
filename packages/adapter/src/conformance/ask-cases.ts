/** The cases of questions with buttons (docs/adapter-protocol.md §4.1). */

import type { AdapterLine, AdapterProcess } from "./process.ts";
import { type Case, expect, type Rig, SkippedCase } from "./rig.ts";

const CHOICES = [
	{ id: "approve", label: "Approve" },
	{ id: "deny", label: "Deny", danger: true },
];

/** The adapter's final answer to the line of this nonce. */
async function answerTo(rig: Rig, process: AdapterProcess, nonce: string, since = 0): Promise<AdapterLine> {
	const fits = (line: AdapterLine) =>
		line.nonce === nonce &&
		(line.type === "delivery_error" || (line.type === "message_sent" && line.final === true)) &&
		process.lines.indexOf(line) >= since;
	return process.hear(`an answer to ${nonce}`, fits, rig.limitMs);
}

function ask(rig: Rig, process: AdapterProcess, question: { id?: string; choices?: object[] } = {}) {
	const nonce = rig.fresh().slice(0, 20);
	const text = `Run \`make\`? (${nonce})`;
	const { id = nonce, choices = CHOICES } = question;
	const line = { delivery: `dlv_${nonce}`, nonce, target: rig.target, text, from: 0, to: text.length };
	process.say({ type: "ask", ...line, id, choices });
	return { ...line, id };
}

async function askedLine(rig: Rig, process: AdapterProcess): Promise<ReturnType<typeof ask> & { messageId: string }> {
	const line = ask(rig, process);
	const sent = await answerTo(rig, process, line.nonce);
	expect(sent.type === "message_sent", `delivery_error: ${String(sent.error)}`);
	return { ...line, messageId: String(sent.messageId) };
}

function settle(rig: Rig, process: AdapterProcess, { delivery, id, messageId }: Awaited<ReturnType<typeof askedLine>>) {
	const nonce = rig.fresh().slice(0, 20);
	const since = process.lines.length;
	process.say({ type: "asked", delivery, nonce, target: rig.target, messageId, id, text: "Approved by Ada." });
	return answerTo(rig, process, nonce, since);
}

/** Presses a button the way a person does, and waits for what `monitor` tells of it. */
async function pressed(
	rig: Rig,
	monitor: AdapterProcess,
	question: Awaited<ReturnType<typeof askedLine>>,
): Promise<AdapterLine> {
	const since = monitor.lines.length;
	rig.press(question.messageId, "Approve");
	const fits = (line: AdapterLine) => line.type === "choice" && monitor.lines.indexOf(line) >= since;
	const choice = await monitor.hear("choice", fits, rig.limitMs);
	expect(choice.id === question.id, `the choice is of ${String(choice.id)} instead of ${question.id}`);
	expect(choice.choice === "approve", `the choice is ${String(choice.choice)} instead of approve`);
	expect(choice.messageId === undefined || choice.messageId === question.messageId, "it names another message");
	return choice;
}

export const ASK_CASES: readonly Case[] = [
	{
		name: "ask: a question is a message, and is settled as often as one likes",
		needs: ["send", "ask"],
		async run(rig) {
			const process = rig.start("send");
			const question = await askedLine(rig, process);
			for (let count = 0; count < 2; count++) {
				const answer = await settle(rig, process, question);
				expect(answer.type === "message_sent", `asked: delivery_error: ${String(answer.error)}`);
				expect(answer.messageId === question.messageId, "asked: it settled another message");
			}
		},
	},
	{
		name: "ask: an invalid question is refused, and nothing is sent",
		needs: ["send", "ask"],
		async run(rig) {
			const process = rig.start("send");
			const many = Array.from({ length: 200 }, (_, n) => ({ id: `c${n}`, label: `Choice ${n}` }));
			const wrong = [
				{ choices: [] },
				{ choices: many },
				{ id: "not an id" },
				{ id: "x".repeat(33) },
				{ choices: [{ id: "a:b", label: "Approve" }] },
				{ choices: [{ id: "approve", label: "" }] },
			];
			for (const question of wrong) {
				const { nonce } = ask(rig, process, question);
				const answer = await answerTo(rig, process, nonce);
				const given = JSON.stringify(question).slice(0, 60);
				expect(answer.type === "delivery_error", `a question that cannot be shown was sent: ${given}`);
				expect(answer.code === "invalid", `the code is ${String(answer.code)} instead of invalid: ${given}`);
			}
		},
	},
	{
		name: "asked: about a message that is not there it is answered, too",
		needs: ["send", "ask"],
		async run(rig) {
			const process = rig.start("send");
			const question = await askedLine(rig, process);
			const answer = await settle(rig, process, { ...question, messageId: "999999999999999999" });
			expect(answer.type === "delivery_error", "it settled a message that is not there");
		},
	},
	{
		name: "monitor: an answer to an unknown press is ignored",
		needs: ["monitor", "ask"],
		async run(rig) {
			const process = rig.start("monitor");
			process.say({ type: "chosen", eventId: rig.fresh(), text: "Nobody reads this." });
			process.closeInput();
			const code = await process.exited(rig.momentMs);
			expect(code === 0, `it ended with code ${String(code)} after its input, instead of 0`);
		},
	},
	{
		name: "choice: every press is reported with the presser's id, also the second",
		needs: ["send", "monitor", "ask"],
		async run(rig) {
			if (!rig.canPress) throw new SkippedCase("this run cannot press buttons");
			const [process, monitor] = [rig.start("send"), rig.start("monitor")];
			const question = await askedLine(rig, process);
			for (let count = 0; count < 2; count++) {
				const { eventId } = await pressed(rig, monitor, question);
				monitor.say({ type: "chosen", eventId, ...(count > 0 && { text: "Ada has approved it already." }) });
			}
			const settled = await settle(rig, process, question);
			expect(settled.type === "message_sent", `asked: delivery_error: ${String(settled.error)}`);
		},
	},
];
