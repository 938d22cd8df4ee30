/** The cases of the `stream` verb: deliveries, messages, intents and resuming (docs/adapter-protocol.md §5, §6). */

import { systemClock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";
import type { AdapterLine } from "./process.ts";
import { type Case, DeliveryDriver, expect, isEnd, NONCE_CHARS_MAX, repeated, SkippedCase, WORDS } from "./rig.ts";

const PLAIN_CASES: Case[] = [
	{
		name: "one delivery",
		async run(rig) {
			const process = rig.start("stream");
			const drive = new DeliveryDriver(rig, process);
			drive.answer(["Hello, ", "this ", "is ", "one ", "answer."]);
			await drive.finish(26);
			await rig.hearOut();
			expect(process.garbage.length === 0, `stdout had a line that is not JSON: ${process.garbage[0]}`);
		},
	},
	{
		name: "several deliveries one after another in one process",
		async run(rig) {
			const process = rig.start("stream");
			for (let count = 0; count < 3; count++) {
				const before = process.lines.length;
				const drive = new DeliveryDriver(rig, process);
				drive.answer([`Answer ${count}.`]);
				// An adapter without names: what it says from here on is of this delivery, if each ends once only.
				const isMine = (line: AdapterLine) =>
					isEnd(line) && drive.isMine(line) && process.lines.indexOf(line) >= before;
				const end = await process.hear(`delivery_complete ${count}`, isMine, rig.limitMs);
				expect(end.type === "delivery_complete", `delivery_error: ${String(end.error)}`);
				drive.acknowledge = false;
			}
		},
	},
	{
		name: "the basic lines: no names on tokens, no acks",
		async run(rig) {
			const process = rig.start("stream");
			const runId = rig.fresh();
			process.say({ type: "stream_start", runId, sessionLabel: "conformance", target: rig.target });
			process.say({ type: "token", text: "Let me " });
			process.say({ type: "tool_status", toolName: "Read", toolCallId: "tc_1", status: "started" });
			const done = { status: "completed", summary: "Read it" };
			process.say({ type: "tool_status", toolName: "Read", toolCallId: "tc_1", ...done });
			process.say({ type: "reasoning", text: "SECRET-REASONING" });
			process.say({ type: "token", text: "check that." });
			process.say({ type: "stream_end", runId, final: true });
			const end = await process.hear("delivery_complete", isEnd, rig.limitMs);
			expect(end.type === "delivery_complete", `delivery_error: ${String(end.error)}`);
			await rig.hearOut();
			const leaked = process.lines.some((line) => JSON.stringify(line).includes("SECRET-REASONING"));
			expect(!leaked, "reasoning appears in a status");
		},
	},
	{
		name: "garbage is skipped and reported on stderr, unknown types are ignored",
		async run(rig) {
			const process = rig.start("stream");
			const drive = new DeliveryDriver(rig, process);
			process.raw("this is not json\n[1,2]\n\n7\n{broken\n");
			process.say({ type: "of_the_future", anything: true });
			drive.start();
			process.raw('"text"\n');
			drive.token("still ");
			process.say({ type: "of_the_future", delivery: drive.name, runId: drive.runId });
			drive.token("here");
			drive.end();
			await drive.finish(10);
			await rig.hearOut();
			expect(process.stderr.trim() !== "", "nothing on stderr tells of the garbage");
		},
	},
	{
		name: "a new assistant message is a new platform message; one without text makes no message",
		async run(rig) {
			const drive = new DeliveryDriver(rig, rig.start("stream"));
			drive.start();
			drive.token("First.");
			drive.end(false);
			drive.token(" \n");
			drive.end(false);
			drive.token("Second.");
			drive.end();
			await drive.finish(15);
			await rig.hearOut();
			const sent = drive.all("message_sent");
			expect(sent.length === 2, `${sent.length} messages instead of 2`);
			const finals = sent.map((line) => line.final);
			expect(finals[0] === false && finals[1] === true, `"final" is ${finals.join(", ")} instead of false, true`);
		},
	},
	{
		name: "white space at the end: counted to its message, and to none after the last",
		async run(rig) {
			const process = rig.start("stream");
			const ended = new DeliveryDriver(rig, process);
			ended.answer(["First. \n\n"]);
			await ended.finish(9);
			ended.acknowledge = false;
			const earlier = process.lines.length;
			const drive = new DeliveryDriver(rig, process);
			drive.start();
			drive.token("First.");
			drive.end(false);
			drive.token(" \n");
			drive.end();
			const isMine = (line: AdapterLine) => drive.isMine(line) && process.lines.indexOf(line) >= earlier;
			const end = await process.hear("the end", (line) => isEnd(line) && isMine(line), rig.limitMs);
			expect(end.type === "delivery_complete", `delivery_error: ${String(end.error)}`);
			const sent = process.lines.filter((line) => line.type === "message_sent" && isMine(line));
			expect(sent.length === 1, `${sent.length} messages instead of 1`);
			const to = sent[0]?.to;
			expect(!rig.speaks("offset") || to === 6, `the last message ends at ${String(to)} instead of 6`);
		},
	},
	{
		name: "an answer without any text completes without a message",
		async run(rig) {
			const drive = new DeliveryDriver(rig, rig.start("stream"));
			drive.answer([]);
			await drive.hear("delivery_complete");
			await rig.hearOut();
			expect(drive.all("message_sent").length === 0, "it reported a message");
		},
	},
	{
		name: "rollover: text beyond textMax continues in further messages",
		async run(rig) {
			const { textMax } = rig.info.limits;
			const text = repeated(WORDS, Math.min(Math.round(textMax * 2.5), 500_000));
			if (text.length <= textMax) throw new SkippedCase(`textMax ${textMax} is more than this suite sends`);
			const drive = new DeliveryDriver(rig, rig.start("stream"));
			drive.start();
			for (let at = 0; at < text.length; at += 400) drive.token(text.slice(at, at + 400));
			drive.end();
			const sent = await drive.finish(text.length);
			const least = Math.ceil(text.trimEnd().length / textMax);
			expect(sent.length >= least, `${sent.length} messages cannot hold the text; it needs ${least}`);
		},
	},
	{
		name: "any text: emoji, U+2028, NUL-free controls, markdown, a line of 200 kB",
		async run(rig) {
			const drive = new DeliveryDriver(rig, rig.start("stream"));
			const parts = [
				"👩‍👩‍👧‍👦 ",
				"e\u0301 ",
				"a\u2028b\u2029c\u0085d ",
				"\r\n",
				"```js\nlet x;\n",
				"```\n",
				"| a | b |\n|---|---|\n",
				"&<>\"'*_~`",
			];
			// More messages would only take longer, at the platform's pace.
			const long = repeated(WORDS, Math.min(200_000, rig.info.limits.textMax * 4));
			drive.start();
			for (const part of parts) drive.token(part);
			drive.reasoning(repeated(WORDS, 200_000));
			drive.token(long);
			drive.end();
			await drive.finish(parts.join("").length + long.length);
		},
	},
	{
		name: "a failed answer ends with what there was",
		async run(rig) {
			const drive = new DeliveryDriver(rig, rig.start("stream"));
			drive.start({ options: { errorText: "Sorry, that failed." } });
			drive.token("Half an ans");
			drive.error();
			await drive.hear("delivery_complete");
			await rig.hearOut();
			const sent = drive.all("message_sent");
			const expected = rig.speaks("runId") ? 2 : 1;
			expect(sent.length === expected, `${sent.length} messages instead of ${expected}`);
			if (!rig.speaks("intent")) return;
			const announced = drive.all("message_creating").length;
			expect(
				announced === expected,
				`${announced} of ${expected} messages were announced: the error's text is one too`,
			);
		},
	},
];

const NAMED_CASES: Case[] = [
	{
		name: "deliveries interleaved, token by token",
		needs: "runId",
		async run(rig) {
			const process = rig.start("stream");
			const drives = Array.from({ length: 8 }, () => new DeliveryDriver(rig, process));
			for (const drive of drives) drive.start();
			for (let word = 0; word < 20; word++) for (const drive of drives) drive.token(`word${word} `);
			for (const drive of drives) drive.end();
			const length = Array.from({ length: 20 }, (_, word) => `word${word} `).join("").length;
			await Promise.all(drives.map((drive) => drive.finish(length)));
		},
	},
	{
		name: "nothing is created before its intent is acknowledged",
		needs: "intent",
		async run(rig) {
			const process = rig.start("stream");
			const drive = new DeliveryDriver(rig, process);
			drive.acknowledge = false;
			drive.answer(["Careful now. ", "More."]);
			const intent = await drive.hearFirst(["message_creating", "message_created", "message_sent"]);
			expect(intent.type === "message_creating", "a message was created without an intent");
			const nonce = String(intent.nonce);
			expect(
				nonce !== "" && nonce.length <= NONCE_CHARS_MAX,
				`nonce "${nonce}" is empty or longer than ${NONCE_CHARS_MAX}`,
			);
			expect(intent.from === 0, `the first intent begins at ${String(intent.from)} instead of 0`);
			// While another delivery, which is acknowledged, goes all its way.
			const other = new DeliveryDriver(rig, process);
			other.answer(["Meanwhile."]);
			await other.finish(10);
			const early = () => drive.all("message_created").length + drive.all("message_sent").length > 0;
			expect(!(await process.until(early, 400)), "a message was created before the ack");
			drive.ack(nonce);
			const [sent] = await drive.finish(18);
			expect(sent?.nonce === nonce, "message_sent has another nonce than its intent");
		},
	},
	{
		name: "resume: a killed process's open message is gone on with, not created again",
		needs: "intent",
		async run(rig) {
			const first = rig.start("stream");
			const name = rig.fresh();
			const before = new DeliveryDriver(rig, first, name);
			const text = "This text was begun before the crash.\nAnd continues ";
			before.start();
			before.token(text);
			const opened = await before.hear("message_created", rig.momentMs).catch(() => undefined);
			await first.kill();
			if (!opened) throw new SkippedCase("it creates messages only when they are complete");
			const after = new DeliveryDriver(rig, rig.start("stream"), name);
			const resume = { position: 0, ordinal: 1, messageId: String(opened.messageId) };
			after.answer([text, "after it."], { resume });
			const [sent] = await after.finish(text.length + 9);
			expect(sent?.messageId === opened.messageId, "it finished another message than the open one");
			expect(after.all("message_creating").length === 0, "it announced a second message");
		},
	},
	{
		name: "resume: what is before the position is not said again",
		needs: "intent",
		async run(rig) {
			const drive = new DeliveryDriver(rig, rig.start("stream"));
			drive.answer(["Only this."], { resume: { position: 100, ordinal: 2 } });
			const [sent] = await drive.finish(110, 100);
			expect(sent?.from === 100, "it does not begin at the position");
		},
	},
	{
		name: "resume: an uncertain creation is looked up, or reported as unknown, never blindly repeated",
		needs: "intent",
		async run(rig) {
			const drive = new DeliveryDriver(rig, rig.start("stream"));
			drive.answer(["Was it there?"], {
				resume: { position: 0, ordinal: 1, uncertain: { nonce: rig.fresh().slice(0, NONCE_CHARS_MAX) } },
			});
			await drive.settled();
			const error = drive.all("delivery_error")[0];
			if (error) expect(error.code === "unknown_outcome", `delivery_error with code ${String(error.code)}`);
			if (rig.info.reconcile === "none" || rig.info.reconcile === undefined) {
				expect(error !== undefined, "it says it cannot reconcile, and did not report the unknown outcome");
			}
		},
	},
	{
		name: "back-pressure: a slow reader of its output loses nothing",
		needs: "runId",
		async run(rig) {
			const process = rig.start("stream");
			const drives = Array.from({ length: 8 }, () => new DeliveryDriver(rig, process));
			process.listen(false);
			for (const drive of drives) drive.start();
			for (let word = 0; word < 500; word++) for (const drive of drives) drive.token("word ");
			for (const drive of drives) drive.end();
			await sleep(systemClock, 700, undefined, "due");
			process.listen(true);
			await Promise.all(drives.map((drive) => drive.finish(2500)));
		},
	},
];

export const STREAM_CASES: readonly Case[] = [
	...PLAIN_CASES.map((each) => ({ ...each, needs: "stream" as const })),
	...NAMED_CASES.map((each): Case => ({ ...each, needs: ["stream" as const, each.needs ?? []].flat() })),
];
