import type { EngineMessage } from "@nexus-stream/protocol/engine";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
	assembleContext as assemble,
	chosenTurns,
	pastTurnOf,
	tokensOf,
} from "../../packages/daemon/src/broker/context.ts";
import type { Turn } from "../../packages/daemon/src/ledger/turns/port.ts";
import { turnOf } from "../ledger/rig.ts";
import { ask, rig, text as say } from "./rig.ts";

const assembleContext = (past: Turn[], fresh: EngineMessage[], budget: number) =>
	assemble(chosenTurns(past.map(pastTurnOf), fresh, budget), fresh);

const fresh = [{ role: "user" as const, text: "new question" }];
const said = (n: number, text = `answer ${n}`, fields: Partial<Turn> = {}) =>
	turnOf(`run_${n}`, {
		messages: [
			{ role: "user", text: `question ${n}` },
			{ role: "assistant", text, messageId: `run_${n}.1` },
		],
		...fields,
	});

describe("the budget", () => {
	test("the newest whole turns that fit, oldest first, then the new message", () => {
		const past = [said(3), said(2), said(1)];
		const cost = tokensOf(assembleContext([said(3)], [], Infinity));
		const texts = (budget: number) => assembleContext(past, fresh, budget).map((message) => message.text);
		expect(texts(Infinity)).toEqual([
			...["question 1", "answer 1", "question 2", "answer 2", "question 3", "answer 3", "new question"],
		]);
		expect(texts(tokensOf(fresh) + 2 * cost)).toEqual([
			"question 2",
			"answer 2",
			"question 3",
			"answer 3",
			"new question",
		]);
		expect(texts(tokensOf(fresh) + 2 * cost - 1)).toEqual(["question 3", "answer 3", "new question"]);
	});

	test("the new message is there however small the budget", () => {
		expect(assembleContext([said(1)], fresh, 0)).toEqual(fresh);
	});

	test("I11: is the one that is configured", async () => {
		const seen: string[][] = [];
		const whole = ["one", "answer", "two", "answer", "three"].map((text) => ({ role: "user" as const, text }));
		const { broker } = rig(
			async function* ({ messages }) {
				seen.push(messages.map((message) => message.text));
				yield say("answer");
			},
			{ limits: { contextTokensMax: tokensOf(whole) - 1 } },
		);
		for (const text of ["one", "two", "three"]) {
			await (await ask(broker, "main", text)).result;
		}
		expect(seen).toEqual([["one"], ["one", "answer", "two"], ["two", "answer", "three"]]);
	});

	test("is kept for all turns", () => {
		const anyTurn = fc.string({ maxLength: 400 }).map((text) => said(1, text));
		fc.assert(
			fc.property(fc.array(anyTurn), fc.nat(500), (past, budget) => {
				const messages = assembleContext(past, fresh, budget);
				expect(messages.at(-1)).toEqual(fresh[0]);
				if (messages.length > 1) expect(tokensOf(messages)).toBeLessThanOrEqual(budget);
			}),
		);
	});
});

describe("an answer that was cut short", () => {
	const answer = (turn: Turn) => assembleContext([turn], [], Infinity).at(-1);

	test("keeps its text and tells the model who cut it", () => {
		expect(answer(said(1, "half an", { status: "aborted", reason: "aborted" }))).toEqual({
			role: "assistant",
			text: "half an\n\n[This answer was stopped by the user before it was complete.]",
			interrupted: "aborted",
		});
		expect(answer(said(1, "half an", { status: "failed", reason: "timeout" }))).toEqual({
			role: "assistant",
			text: "half an\n\n[This answer failed before it was complete.]",
			interrupted: "failed",
		});
	});

	test("with no text is the note alone", () => {
		const note = "[This answer was stopped by the user before it was complete.]";
		const stopped = { status: "aborted", reason: "aborted" } as const;
		expect(answer(said(1, "", stopped))?.text).toBe(note);
		expect(answer(turnOf("run_1", { ...stopped, messages: [{ role: "user", text: "q" }] }))?.text).toBe(note);
	});

	test("only its last message carries the note", () => {
		const messages: Turn["messages"] = [
			{ role: "user", text: "q" },
			{ role: "assistant", text: "first" },
			{ role: "assistant", text: "second" },
		];
		const context = assembleContext([turnOf("run_1", { messages, status: "failed", reason: "error" })], [], Infinity);
		expect(context.map((message) => message.interrupted)).toEqual([undefined, undefined, "failed"]);
	});
});

test("tool calls stand with the message that made them, paired with how they ended", () => {
	const turn = said(1, "", {
		toolCalls: [
			{
				callId: "c1",
				name: "read",
				status: "completed",
				message: 1,
				startedAt: 1,
				endedAt: 2,
				args: '{"a":1}',
				result: '"ok"',
			},
			{ callId: "c2", name: "list", status: "completed", message: 1, startedAt: 1, endedAt: 2, result: "[1,2]" },
			{ callId: "c3", name: "wait", status: "failed", message: 1, startedAt: 1, endedAt: 2, summary: "stopped" },
		],
	});
	expect(assembleContext([turn], [], Infinity).at(-1)?.toolCalls).toEqual([
		{ callId: "c1", name: "read", args: { a: 1 }, status: "completed", result: "ok" },
		{ callId: "c2", name: "list", args: {}, status: "completed", result: "[1,2]" },
		{ callId: "c3", name: "wait", args: {}, status: "failed", result: "stopped" },
	]);
});

test("an empty answer without tools is left out: models refuse empty messages", () => {
	expect(assembleContext([said(1, "")], fresh, Infinity).map((message) => message.role)).toEqual(["user", "user"]);
});

test("a picture does not push what was said out of the budget", () => {
	const attachments = [{ name: "a.png", contentType: "image/png", data: "A".repeat(4_000_000) }];
	const seen = turnOf("run_1", { messages: [{ role: "user", text: "see", attachments }] });
	expect(assembleContext([seen], fresh, 100_000)).toHaveLength(2);
	const read = [{ name: "a.txt", contentType: "text/plain", data: "A".repeat(4_000_000) }];
	const long = turnOf("run_1", { messages: [{ role: "user", text: "read", attachments: read }] });
	expect(assembleContext([long], fresh, 100_000)).toEqual(fresh);
});

test("attachments travel with their message", () => {
	const attachments = [{ name: "a.png", contentType: "image/png", data: "AAAA" }];
	const turn = turnOf("run_1", { messages: [{ role: "user", text: "see", attachments }] });
	expect(assembleContext([turn], [], Infinity)).toEqual([{ role: "user", text: "see", attachments }]);
});
