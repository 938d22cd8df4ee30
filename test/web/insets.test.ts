/** Parts, tools and reasoning stand where the protocol puts them (P3.4), and never before their text is shown. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createFold, type Frame, type MessageView } from "../../packages/protocol/src/protocol.ts";
import { insetsOf, placeInsets } from "../../packages/web/src/chat/arrange.ts";
import { parseWhole } from "../../packages/web/src/ui/markdown.ts";
import { atEffort } from "../effort.ts";

const RUN = "run_00000000000000000000000000";
const stream = (n: number) => `${RUN}.${n}`;
const begin = (n: number, modality: string): Frame => ({
	type: "stream.begin",
	message_id: stream(n),
	run_id: RUN,
	trace_id: "0".repeat(32),
	correlation_group: RUN,
	modality,
	content_type: "text/plain",
	ts: n,
});
const chunk = (n: number, seq_no: number, payload: string, align?: number): Frame => ({
	type: "stream.chunk",
	message_id: stream(n),
	seq_no,
	payload,
	is_partial: n === 1,
	ts: seq_no,
	...(align !== undefined && { align: { message_id: stream(1), seq_no: align } }),
});

function viewOf(frames: readonly Frame[]): MessageView {
	const fold = createFold();
	for (const frame of frames) fold.push(frame);
	const [message] = fold.view().messages;
	if (!message) throw new Error("no message");
	return message;
}

/** The visible items from top to bottom: text blocks by their beginning, insets by their payload. */
const shown = (message: MessageView, shownChars = message.text.length) => {
	const blocks = parseWhole(message.text.slice(0, shownChars));
	return placeInsets(blocks, insetsOf(message), shownChars).map((piece) => {
		if (piece.kind === "block") return message.text.slice(piece.block.start, piece.block.end);
		return piece.kind === "part" ? `[${piece.part.payload}]` : `[${piece.kind}]`;
	});
};

describe("the place of what is not text", () => {
	it("P3.4: a part follows the block that holds the text it is aligned to", () => {
		const message = viewOf([
			begin(1, "text"),
			begin(2, "card"),
			chunk(1, 1, "First. "),
			chunk(1, 2, "Still first.\n\n"),
			chunk(2, 1, "early", 1),
			chunk(2, 2, "between", 2),
			chunk(1, 3, "Second."),
			chunk(2, 3, "late", 3),
		]);
		expect(shown(message)).toEqual(["First. Still first.", "[early]", "[between]", "Second.", "[late]"]);
	});

	it("P3.4: a part that is aligned to text to come waits for it", () => {
		const frames = [begin(1, "text"), begin(2, "card"), chunk(2, 1, "card", 2), chunk(1, 1, "One.\n\n")];
		expect(shown(viewOf(frames))).toEqual(["One."]);
		expect(shown(viewOf([...frames, chunk(1, 2, "Two.")]))).toEqual(["One.", "Two.", "[card]"]);
	});

	it("reasoning before any text comes first; streams at one place keep the order of their begins", () => {
		const status = JSON.stringify({ type: "tool_status", toolName: "t", toolCallId: "c", status: "started" });
		const message = viewOf([
			begin(1, "text"),
			begin(2, "reasoning"),
			chunk(2, 1, "hm"),
			begin(3, "tool"),
			chunk(3, 1, status),
			chunk(1, 1, "Text."),
		]);
		expect(shown(message)).toEqual(["[reasoning]", "[tool]", "Text."]);
	});

	it("for all texts and places: nothing is lost, doubled, or shown before its text", () => {
		const text = fc.array(fc.constantFrom("word ", "\n\n", "- item\n", "```\ncode\n```\n", "# head\n"), {
			minLength: 1,
			maxLength: 12,
		});
		fc.assert(
			fc.property(
				text,
				fc.array(fc.nat(11), { maxLength: 6 }),
				fc.double({ min: 0, max: 1, noNaN: true }),
				(chunks, aligns, share) => {
					const parts = aligns.map((at) => Math.min(at, chunks.length - 1) + 1).sort((a, b) => a - b);
					const message = viewOf([
						begin(1, "text"),
						begin(2, "card"),
						...chunks.map((payload, index) => chunk(1, index + 1, payload)),
						...parts.map((at, index) => chunk(2, index + 1, String(index), at)),
					]);
					const all = shown(message).filter((piece) => /^\[\d+\]$/.test(piece));
					expect(all).toEqual(parts.map((_, index) => `[${index}]`));
					const limit = Math.floor(share * message.text.length);
					const visible = placeInsets(parseWhole(message.text.slice(0, limit)), insetsOf(message), limit);
					for (const piece of visible) if (piece.kind === "part") expect(piece.after).toBeLessThanOrEqual(limit);
					expect(visible.filter(({ kind }) => kind === "part")).toHaveLength(
						insetsOf(message).filter(({ after }) => after <= limit).length,
					);
				},
			),
			{ numRuns: atEffort(500, 100) },
		);
	});
});
