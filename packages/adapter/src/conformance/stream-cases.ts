/** The cases of the `stream` verb: deliveries, messages, intents and resuming (docs/adapter-protocol.md §5, §6). */

import { systemClock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";
import type { AdapterLine } from "./process.ts";
import {
	type Case,
	type DeliveryDriver,
	expect,
	expectType,
	isEnd,
	type Rig,
	repeated,
	SkippedCase,
	WORDS,
} from "./rig.ts";

const NONCE_CHARS_MAX = 25;

/** `drive` is a delivery to a separate process. */
const stream = (name: string, needs: Case["needs"], run: (drive: DeliveryDriver, rig: Rig) => Promise<void>): Case => ({
	name,
	needs: ["stream", ...needs],
	run: (rig) => run(rig.drive(), rig),
});

export const STREAM_CASES: readonly Case[] = [
	stream("one delivery", [], async (drive, rig) => {
		drive.answer(["Hello, ", "this ", "is ", "one ", "answer."]);
		await drive.finish(26);
		await rig.hearOut();
		const { garbage } = drive.process;
		expect(garbage.length === 0, `stdout had a line that is not JSON: ${garbage[0]}`);
	}),
	stream("several deliveries one after another in one process", [], async ({ process }, rig) => {
		for (let count = 0; count < 3; count++) {
			const before = process.lines.length;
			const drive = rig.drive(process);
			drive.answer([`Answer ${count}.`]);
			// An adapter without names: what it says from here on is of this delivery, if each ends once only.
			const isMine = (line: AdapterLine) => isEnd(line) && drive.isMine(line);
			expectType(await process.hear(`delivery_complete ${count}`, isMine, rig.limitMs, before), "delivery_complete");
			drive.acknowledge = false;
		}
	}),
	stream("the basic lines: no names on tokens, no acks", [], async (drive, rig) => {
		drive.acknowledge = false;
		const { process, runId } = drive;
		process.say({ type: "stream_start", runId, sessionLabel: "conformance", target: rig.target });
		process.say({ type: "token", text: "Let me " });
		const tool = { type: "tool_status", toolName: "Read", toolCallId: "tc_1" };
		process.say({ ...tool, status: "started" });
		process.say({ ...tool, status: "completed", summary: "Read it" });
		process.say({ type: "reasoning", text: "SECRET-REASONING" });
		process.say({ type: "token", text: "check that." });
		process.say({ type: "stream_end", runId, final: true });
		expectType(await process.hear("delivery_complete", isEnd, rig.limitMs), "delivery_complete");
		await rig.hearOut();
		const leaked = process.lines.some((line) => JSON.stringify(line).includes("SECRET-REASONING"));
		expect(!leaked, "reasoning appears in a status");
	}),
	stream("garbage is skipped and reported on stderr, unknown types are ignored", [], async (drive, rig) => {
		const { process } = drive;
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
	}),
	stream(
		"a new assistant message is a new platform message; one without text makes no message",
		[],
		async (drive, rig) => {
			drive.start();
			for (const text of ["First.", " \n", "Second."]) {
				drive.token(text);
				drive.end(text === "Second.");
			}
			await drive.finish(15);
			await rig.hearOut();
			const sent = drive.all("message_sent");
			expect(sent.length === 2, `${sent.length} messages instead of 2`);
			const finals = sent.map((line) => line.final);
			expect(finals[0] === false && finals[1] === true, `"final" is ${finals.join(", ")} instead of false, true`);
		},
	),
	stream("white space at the end: counted to its message, and to none after the last", [], async (ended, rig) => {
		const { process } = ended;
		ended.answer(["First. \n\n"]);
		await ended.finish(9);
		ended.acknowledge = false;
		const earlier = process.lines.length;
		const drive = rig.drive(process);
		drive.start();
		drive.token("First.");
		drive.end(false);
		drive.token(" \n");
		drive.end();
		const end = await process.hear("the end", (line) => isEnd(line) && drive.isMine(line), rig.limitMs, earlier);
		expectType(end, "delivery_complete");
		const sent = process.lines.slice(earlier).filter((line) => line.type === "message_sent" && drive.isMine(line));
		expect(sent.length === 1, `${sent.length} messages instead of 1`);
		const to = sent[0]?.to;
		expect(!rig.speaks("offset") || to === 6, `the last message ends at ${String(to)} instead of 6`);
	}),
	stream("an answer without any text completes without a message", [], async (drive, rig) => {
		drive.answer([]);
		await drive.hear("delivery_complete");
		await rig.hearOut();
		expect(drive.all("message_sent").length === 0, "it reported a message");
	}),
	stream("rollover: text beyond textMax continues in further messages", [], async (drive, { info }) => {
		const { textMax } = info.limits;
		const text = repeated(WORDS, Math.min(Math.round(textMax * 2.5), 500_000));
		if (text.length <= textMax) throw new SkippedCase(`textMax ${textMax} is more than this suite sends`);
		drive.start();
		for (let at = 0; at < text.length; at += 400) drive.token(text.slice(at, at + 400));
		drive.end();
		const sent = await drive.finish(text.length);
		const least = Math.ceil(text.trimEnd().length / textMax);
		expect(sent.length >= least, `${sent.length} messages cannot hold the text; it needs ${least}`);
	}),
	stream("any text: emoji, U+2028, NUL-free controls, markdown, a line of 200 kB", [], async (drive, { info }) => {
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
		const long = repeated(WORDS, Math.min(200_000, info.limits.textMax * 4));
		drive.start();
		for (const part of parts) drive.token(part);
		drive.reasoning(repeated(WORDS, 200_000));
		drive.token(long);
		drive.end();
		await drive.finish(parts.join("").length + long.length);
	}),
	stream("a failed answer ends with what there was", [], async (drive, rig) => {
		drive.start({ options: { errorText: "Sorry, that failed." } });
		drive.token("Half an ans");
		drive.error();
		await drive.hear("delivery_complete");
		await rig.hearOut();
		const sent = drive.all("message_sent").length;
		const expected = rig.speaks("runId") ? 2 : 1;
		expect(sent === expected, `${sent} messages instead of ${expected}`);
		if (!rig.speaks("intent")) return;
		const announced = drive.all("message_creating").length;
		expect(announced === expected, `${announced} of ${expected} messages were announced: the error's text is one too`);
	}),
	stream("deliveries interleaved, token by token", ["runId"], async ({ process }, rig) => {
		const drives = Array.from({ length: 8 }, () => rig.drive(process));
		const words = Array.from({ length: 20 }, (_, word) => `word${word} `);
		for (const drive of drives) drive.start();
		for (const word of words) for (const drive of drives) drive.token(word);
		for (const drive of drives) drive.end();
		await Promise.all(drives.map((drive) => drive.finish(words.join("").length)));
	}),
	stream("nothing is created before its intent is acknowledged", ["intent"], async (drive, rig) => {
		drive.acknowledge = false;
		drive.answer(["Careful now. ", "More."]);
		const intent = await drive.hearFirst(["message_creating", "message_created", "message_sent"]);
		expect(intent.type === "message_creating", "a message was created without an intent");
		const nonce = String(intent.nonce);
		const isShort = nonce !== "" && nonce.length <= NONCE_CHARS_MAX;
		expect(isShort, `nonce "${nonce}" is empty or longer than ${NONCE_CHARS_MAX}`);
		expect(intent.from === 0, `the first intent begins at ${String(intent.from)} instead of 0`);
		// While another delivery, which is acknowledged, goes all its way.
		const other = rig.drive(drive.process);
		other.answer(["Meanwhile."]);
		await other.finish(10);
		const early = () => drive.all("message_created").length + drive.all("message_sent").length > 0;
		expect(!(await drive.process.until(early, 400)), "a message was created before the ack");
		drive.ack(nonce);
		const [sent] = await drive.finish(18);
		expect(sent?.nonce === nonce, "message_sent has another nonce than its intent");
	}),
	stream(
		"resume: a killed process's open message is gone on with, not created again",
		["intent"],
		async (before, rig) => {
			const text = "This text was begun before the crash.\nAnd continues ";
			before.start();
			before.token(text);
			const opened = await before.hear("message_created", rig.momentMs).catch(() => undefined);
			await before.process.kill();
			if (!opened) throw new SkippedCase("it creates messages only when they are complete");
			const after = rig.drive(rig.start("stream"), before.id);
			const resume = { position: 0, ordinal: 1, messageId: String(opened.messageId) };
			after.answer([text, "after it."], { resume });
			const [sent] = await after.finish(text.length + 9);
			expect(sent?.messageId === opened.messageId, "it finished another message than the open one");
			expect(after.all("message_creating").length === 0, "it announced a second message");
		},
	),
	stream("resume: what is before the position is not said again", ["intent"], async (drive) => {
		drive.answer(["Only this."], { resume: { position: 100, ordinal: 2 } });
		const [sent] = await drive.finish(110, 100);
		expect(sent?.from === 100, "it does not begin at the position");
	}),
	stream(
		"resume: an uncertain creation is looked up, or reported as unknown, never blindly repeated",
		["intent"],
		async (drive, rig) => {
			drive.answer(["Was it there?"], { resume: { position: 0, ordinal: 1, uncertain: { nonce: rig.nonce() } } });
			await drive.hearFirst();
			const error = drive.all("delivery_error")[0];
			if (error) expect(error.code === "unknown_outcome", `delivery_error with code ${String(error.code)}`);
			const canTell = rig.info.reconcile !== "none" && rig.info.reconcile !== undefined;
			expect(canTell || error !== undefined, "it says it cannot reconcile, and did not report the unknown outcome");
		},
	),
	stream("back-pressure: a slow reader of its output loses nothing", ["runId"], async ({ process }, rig) => {
		const drives = Array.from({ length: 8 }, () => rig.drive(process));
		process.listen(false);
		for (const drive of drives) drive.start();
		for (let word = 0; word < 500; word++) for (const drive of drives) drive.token("word ");
		for (const drive of drives) drive.end();
		await sleep(systemClock, 700, undefined, "due");
		process.listen(true);
		await Promise.all(drives.map((drive) => drive.finish(2500)));
	}),
];
