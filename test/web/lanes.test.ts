/** Agents that work in parallel stand side by side, and no message is shown twice or left out. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MessageView } from "../../packages/protocol/src/protocol.ts";
import { stretchesOf, toneOf } from "../../packages/web/src/chat/lanes.ts";
import { atEffort } from "../effort.ts";

const said = (messageId: string, agent: string | undefined, startedAt: number, endedAt?: number): MessageView => ({
	messageId,
	agent,
	contentType: "text/markdown",
	text: messageId,
	state: endedAt === undefined ? "streaming" : "completed",
	reasoning: [],
	tools: [],
	parts: [],
	startedAt,
	endedAt,
});

/** Stretches as lists of lanes: `agent: ids`. */
const shape = (messages: readonly MessageView[]) =>
	stretchesOf(messages).map(({ lanes }) =>
		lanes.map(({ agent, messages: own }) => `${agent}: ${own.map(({ messageId }) => messageId).join(" ")}`),
	);

describe("A7: stretches", () => {
	it("one after another, each has its own", () => {
		expect(shape([said("1", "lead", 0, 5), said("2", "writer", 5, 9), said("3", "lead", 9, 10)])).toEqual([
			["lead: 1"],
			["writer: 2"],
			["lead: 3"],
		]);
	});

	it("what overlaps is one stretch with a lane for each agent, also while it is live", () => {
		const side = [said("1", "lead", 0, 5), said("2", "writer", 5, 20), said("3", "operator", 6, 9)];
		expect(shape([...side, said("4", "operator", 10, 12), said("5", "lead", 20, 21)])).toEqual([
			["lead: 1"],
			["writer: 2", "operator: 3 4"],
			["lead: 5"],
		]);
		expect(shape([said("1", "writer", 0), said("2", "operator", 1)])).toEqual([["writer: 1", "operator: 2"]]);
	});

	it("messages of one agent, or without an agent, stand in one lane", () => {
		expect(shape([said("1", undefined, 0, 1), said("2", undefined, 2, 3)])).toEqual([["undefined: 1 2"]]);
	});

	it("each message is shown exactly once, and each agent's in its order", () => {
		const message = fc.record({
			agent: fc.constantFrom(undefined, "lead", "writer", "operator"),
			startedAt: fc.nat(50),
			lasts: fc.option(fc.nat(50), { nil: undefined }),
		});
		fc.assert(
			fc.property(fc.array(message, { maxLength: 30 }), (given) => {
				const messages = given
					.toSorted((one, other) => one.startedAt - other.startedAt)
					.map(({ agent, startedAt, lasts }, n) =>
						said(`${n}`, agent, startedAt, lasts === undefined ? undefined : startedAt + lasts),
					);
				const shown = stretchesOf(messages).flatMap(({ lanes }) => lanes.flatMap((lane) => lane.messages));
				expect(new Set(shown).size).toBe(shown.length);
				expect(shown.toSorted((one, other) => Number(one.messageId) - Number(other.messageId))).toEqual(messages);
				for (const speaker of [undefined, "lead", "writer", "operator"]) {
					const own = (list: readonly MessageView[]) => list.filter(({ agent }) => agent === speaker);
					expect(own(shown)).toEqual(own(messages));
				}
				for (const { lanes } of stretchesOf(messages))
					for (const { agent, messages: own } of lanes) expect(own.every((each) => each.agent === agent)).toBe(true);
			}),
			{ numRuns: atEffort(300) },
		);
	});
});

it("an agent keeps its colour", () => {
	expect(toneOf("writer")).toBe(toneOf("writer"));
	for (const name of ["", "lead", "writer", "😀"]) expect(toneOf(name)).toMatch(/^[a-z]+$/);
	expect(new Set(["lead", "writer", "operator"].map(toneOf)).size).toBe(3);
});
