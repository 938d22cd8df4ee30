/** The cases of questions with buttons (docs/adapter-protocol.md §4.1). */

import type { AdapterLine, AdapterProcess } from "./process.ts";
import { type Case, expect, expectType, type Rig, SkippedCase } from "./rig.ts";

const CHOICES = [
	{ id: "approve", label: "Approve" },
	{ id: "deny", label: "Deny", danger: true },
];

interface Asked {
	delivery: string;
	id: string;
	messageId: string;
}

/** The adapter's final answer to the line of this nonce. */
function answerTo(rig: Rig, process: AdapterProcess, nonce: string): Promise<AdapterLine> {
	const fits = (line: AdapterLine) =>
		line.nonce === nonce && (line.type === "delivery_error" || (line.type === "message_sent" && line.final === true));
	return process.hear(`an answer to ${nonce}`, fits, rig.limitMs);
}

async function asked(rig: Rig, process: AdapterProcess): Promise<Asked> {
	const nonce = rig.nonce();
	const line = rig.line(`Run \`make\`? (${nonce})`, 0, nonce);
	process.say({ type: "ask", ...line, id: nonce, choices: CHOICES });
	const sent = await answerTo(rig, process, nonce);
	expectType(sent, "message_sent");
	return { delivery: line.delivery, id: nonce, messageId: String(sent.messageId) };
}

function settle(rig: Rig, process: AdapterProcess, question: Asked): Promise<AdapterLine> {
	const nonce = rig.nonce();
	process.say({ type: "asked", ...question, nonce, target: rig.target, text: "Approved by Ada." });
	return answerTo(rig, process, nonce);
}

/** Presses a button the way a person does, and waits for what `monitor` tells of it. */
async function pressed(rig: Rig, monitor: AdapterProcess, question: Asked): Promise<AdapterLine> {
	const since = monitor.lines.length;
	rig.press(question.messageId, "Approve");
	const choice = await monitor.hear("choice", (line) => line.type === "choice", rig.limitMs, since);
	expect(choice.id === question.id, `the choice is of ${String(choice.id)} instead of ${question.id}`);
	expect(choice.choice === "approve", `the choice is ${String(choice.choice)} instead of approve`);
	expect(choice.messageId === undefined || choice.messageId === question.messageId, "it names another message");
	return choice;
}

const sending = (name: string, run: (process: AdapterProcess, rig: Rig) => Promise<void>): Case => ({
	name,
	needs: ["send", "ask"],
	run: (rig) => run(rig.start("send"), rig),
});

export const ASK_CASES: readonly Case[] = [
	sending("ask: a question is a message, and is settled as often as one likes", async (process, rig) => {
		const question = await asked(rig, process);
		for (let count = 0; count < 2; count++) {
			const answer = await settle(rig, process, question);
			expectType(answer, "message_sent");
			expect(answer.messageId === question.messageId, "asked: it settled another message");
		}
	}),
	sending("ask: an invalid question is refused, and nothing is sent", async (process, rig) => {
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
			const line = rig.line("Run `make`?");
			process.say({ type: "ask", ...line, id: line.nonce, choices: CHOICES, ...question });
			const answer = await answerTo(rig, process, line.nonce);
			const given = JSON.stringify(question).slice(0, 60);
			expect(answer.type === "delivery_error", `a question that cannot be shown was sent: ${given}`);
			expect(answer.code === "invalid", `the code is ${String(answer.code)} instead of invalid: ${given}`);
		}
	}),
	sending("asked: about a message that is not there it is answered, too", async (process, rig) => {
		const question = await asked(rig, process);
		const answer = await settle(rig, process, { ...question, messageId: "999999999999999999" });
		expect(answer.type === "delivery_error", "it settled a message that is not there");
	}),
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
			const question = await asked(rig, process);
			for (let count = 0; count < 2; count++) {
				const { eventId } = await pressed(rig, monitor, question);
				monitor.say({ type: "chosen", eventId, ...(count > 0 && { text: "Ada has approved it already." }) });
			}
			expectType(await settle(rig, process, question), "message_sent");
		},
	},
];
