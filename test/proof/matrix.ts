/** The daemon's outbound side with every bundled adapter as a real process, and fake platforms around it. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Delivery } from "../../packages/daemon/src/ledger/deliveries/port.ts";
import type { PlatformCall } from "../../packages/daemon/src/nex/port.ts";
import { LIMIT_MS } from "../effort.ts";
import { beginRun, createRigWith, FAST, onlyMessages, type Rig } from "../nex/outbound/rig.ts";
import type { TestTime } from "../time/time.ts";
import { until } from "../until.ts";
import {
	type Channel,
	channelsConfig,
	type FakePlatform,
	listenForStatuses,
	noncesOf,
	sentencesOf,
	startPlatforms,
} from "./fake-platforms.ts";
import { type Doubt, emptyLine, judge, type Line, measured } from "./table.ts";

export interface Matrix {
	rig: Rig;
	platforms: FakePlatform[];
	/** Delivers answers to as many chats at once, and says what became of them. */
	deliver(platform: FakePlatform, fault: string, work: Work): Promise<Line>;
	close(): Promise<void>;
}

export interface Work {
	chats: number;
	/** Another answer for each chat while this says so. */
	more(): boolean;
	inDoubt: Doubt;
}

/** Sentences come while earlier ones are delivered. */
const SENTENCE_EVERY_MS = 4;

export interface MatrixOptions {
	channels: readonly Channel[];
	time: TestTime;
	/** An adapter has reported a call. */
	onCall?(call: PlatformCall): void;
}

export async function startMatrix({ channels, time, onCall }: MatrixOptions): Promise<Matrix> {
	const platforms = await startPlatforms(channels, time);
	const restart = { ...FAST.restart, backoffMs: 5, backoffMsMax: 20, failuresMax: 100_000 };
	// Dozens of kills in a row would make every wait a minute. Only an adapter that hangs takes so long to say what it is.
	const limits = { ...FAST, restart, retryMsMax: 500, oneShot: { ...FAST.oneShot, answerMs: LIMIT_MS } };
	/** By delivery, what its adapter tells of calls that failed. */
	const failures = new Map<string, PlatformCall[]>();
	const noteCall = (call: PlatformCall) => {
		const { delivery = "", ok } = call;
		if (!ok) failures.set(delivery, [...(failures.get(delivery) ?? []), call]);
		onCall?.(call);
	};
	const rig = createRigWith(() => channelsConfig(platforms, time), { limits, onCall: noteCall });
	await rig.outbound.start();
	const told = new Map<string, number>();
	if (channels.includes("whatsapp")) rig.outbound.monitor("whatsapp", "main", onlyMessages());
	listenForStatuses(platforms, async ({ method, headers, body }) => {
		const request = { method, query: "", headers, body: body.toString("base64") };
		// WhatsApp tries for days to tell what it has to tell, the fake for a second: too short while everything starts.
		for (;;) {
			const { status } = await rig.outbound.webhook("whatsapp", "main", request).catch(() => ({ status: 503 }));
			if (status === 200) for (const nonce of noncesOf(body)) told.set(nonce, Date.now());
			if (status === 200 || closed) return status;
			await sleep(20);
		}
	});
	let chats = 0;
	let closed = false;
	return {
		rig,
		platforms,
		async deliver(platform, fault, work) {
			const line = emptyLine(platform, fault);
			const before = platform.fake.calls.length;
			const deliverTo = async (first: number) => {
				let chat = first;
				let said = "";
				do {
					const sentences = sentencesOf(platform.sentences, `answer ${line.deliveries + 1} in chat ${chat}`);
					const row = await deliverOne(rig, platform, chat, sentences);
					const failed = failures.get(row.id) ?? [];
					const source = said + sentences.join("");
					const inDoubt: Doubt = (...record) => failed.some(isUnanswered) || work.inDoubt(...record);
					judge(line, {
						row,
						platform,
						chat,
						source,
						before: said.length,
						inDoubt,
						toldAt: (nonce) => told.get(nonce),
						failures: failed.map(({ call, detail }) => `${call}: ${detail}`),
					});
					said = source;
					// A flagged answer may lack its end: what comes after it goes elsewhere.
					if (row.state !== "complete") [chat, said] = [chats++, ""];
				} while (work.more());
			};
			await Promise.all(Array.from({ length: work.chats }, () => deliverTo(chats++)));
			return measured(line, platform.fake.calls.slice(before));
		},
		async close() {
			closed = true;
			await rig.close();
			await Promise.all(platforms.map(({ fake }) => fake.close()));
		},
	};
}

const isUnanswered = ({ call, detail }: PlatformCall): boolean =>
	(call === "create" || call === "start") && detail?.includes("no answer within") === true;

/** One answer that is written while it is delivered. */
async function deliverOne(
	rig: Rig,
	{ channel, target }: FakePlatform,
	chat: number,
	sentences: readonly string[],
): Promise<Delivery> {
	const run = await beginRun(rig.bus, `${channel}-${chat}`);
	const account = { channel, id: "main" };
	const { id } = await rig.outbound.deliver({ runId: run.runId, account, target: target(chat) });
	const settled = rig.outbound.settled(id);
	for (const sentence of sentences) {
		run.text(sentence);
		await sleep(SENTENCE_EVERY_MS);
	}
	await run.end();
	let over = false;
	const end = () => {
		over = true;
	};
	settled.then(end, end);
	const row = () => JSON.stringify(rig.deliveries.get(id));
	await until(`${channel}: ${id} settles`, () => over).catch((cause) => {
		throw new Error(`${channel}: ${row()}`, { cause });
	});
	return await settled;
}
