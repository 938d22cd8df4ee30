/** A send that needs several platform messages: after any crash or refusal between them, each piece exists once. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SentLog } from "../../../packages/adapter/src/memory/sent.ts";
import type { Platform } from "../../../packages/adapter/src/platform/platform.ts";
import { PlatformError } from "../../../packages/adapter/src/platform/platform-error.ts";
import type { Session } from "../../../packages/adapter/src/platform/session.ts";
import type { AdapterInfo, SendStatus } from "../../../packages/adapter/src/port.ts";
import { createAdapterContext } from "../../../packages/adapter/src/serve/context.ts";
import { createSends } from "../../../packages/adapter/src/serve/send.ts";
import type { Bus } from "../../../packages/daemon/src/bus/bus.ts";
import { type Delivery, deliveryWrites } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { createRatePause } from "../../../packages/daemon/src/nex/accounts/platform-health.ts";
import type { OnPiece, SendAnswer, SendRequest } from "../../../packages/daemon/src/nex/accounts/send-port.ts";
import { deliverBySend } from "../../../packages/daemon/src/nex/delivery/blocks/send-delivery.ts";
import type { DeliveryContext, DeliveryOutcome } from "../../../packages/daemon/src/nex/delivery/delivery-context.ts";
import { LiveDelivery } from "../../../packages/daemon/src/nex/delivery/live-delivery.ts";
import { DeliveryRecord, Records } from "../../../packages/daemon/src/nex/delivery/record.ts";
import { type Clock, systemClock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { normalise } from "../../adapter/normalise.ts";
import { atEffort } from "../../effort.ts";
import { openPlainStore } from "../../store.ts";
import { framedRun, saidBy } from "./framed.ts";
import { FAST } from "./rig.ts";

type Victim = "adapter" | "daemon";

interface Plan {
	text: string;
	textMax: number;
	/** Which process dies at which moment, counted over the whole life of the delivery. */
	deaths?: readonly { at: number; who: Victim }[];
	/** The platform's answer to the n-th creation, counted from 1. */
	refusals?: Readonly<Record<number, PlatformError>>;
	/** The platform answers before the daemon has written anything down. */
	instant?: boolean;
	fields?: AdapterInfo["fields"];
	reconcile?: AdapterInfo["reconcile"];
}

interface Story {
	shown: { nonce: string; text: string }[];
	row: Delivery;
	outcome: DeliveryOutcome;
	moments: number;
	/** Every line that the daemon wrote. */
	lines: SendRequest[];
}

const never = new Promise<never>(() => {});

/** The platform, the kit's `send`, the daemon's path to it and a real ledger; processes live in turns until the delivery has an outcome. */
async function live(plan: Plan): Promise<Story> {
	const store = openPlainStore(":memory:");
	const { bus } = store;
	const runId = await framedRun(bus, saidBy("writer", plan.text));
	const rows = store.stored.deliveries;
	const delivery = {
		id: "dlv_1",
		runId,
		channel: "x",
		account: "a",
		target: { to: "c" },
		options: {},
		createdAt: Date.now(),
	};
	await bus.write([deliveryWrites.open(delivery), deliveryWrites.setMode("dlv_1", "whole", Date.now())]);
	const story = { shown: [] as Story["shown"], lines: [] as SendRequest[], moments: 0 };
	let creations = 0;
	const info: AdapterInfo = {
		channel: "x",
		version: "1",
		protocol: 1,
		supports: ["send"],
		delivery: "whole",
		settings: [],
		fields: plan.fields ?? ["runId", "offset", "pieces"],
		limits: { textMax: plan.textMax, unit: "utf16" },
		reconcile: plan.reconcile ?? "history",
	};
	const platform: Platform = {
		info,
		render: (markdown) => markdown,
		measure: (rendered) => rendered.length,
		pace: () => ({ targetIntervalMs: 0 }),
		open: () => Promise.reject(new Error("unused")),
	};

	/** One life of the daemon, with as many lives of the adapter as it needs. */
	async function daemon(): Promise<DeliveryOutcome | "dead"> {
		let dead = false;
		const { promise: death, resolve: die } = Promise.withResolvers<"dead">();
		const clock: Clock = {
			now: () => Date.now(),
			after: (ms, callback) => systemClock.after(ms, () => dead || callback(), "due"),
		};
		const write: Bus["write"] = (writes) =>
			new Promise((resolve, reject) => {
				setImmediate(() => {
					if (dead) return;
					bus.write(writes).then(resolve, reject);
					// A dead process commits nothing later.
					bus.flush();
				});
			});
		const record = new DeliveryRecord(
			"dlv_1",
			new Records({ committer: { write, fenced: bus.fenced }, clock, log: silentLog }),
		);
		const tracked = new LiveDelivery(rows.get("dlv_1")!, record, clock);

		function request(line: SendRequest, _signal: AbortSignal, piece: OnPiece = () => {}): Promise<SendAnswer> {
			if (dead) return never;
			story.lines.push(line);
			const { promise, resolve } = Promise.withResolvers<SendAnswer>();
			let gone = false;
			const moment = (): boolean => {
				if (gone || dead) return true;
				story.moments++;
				const struck = plan.deaths?.find(({ at }) => at === story.moments);
				if (!struck) return false;
				gone = true;
				if (struck.who === "adapter") resolve({ type: "lost", error: "killed" });
				else {
					dead = true;
					die("dead");
				}
				return true;
			};
			const session: Session = {
				async create(_target, text, { nonce }) {
					if (!plan.instant) await new Promise((resolve) => setTimeout(resolve, 1));
					if (moment()) return never;
					const refusal = plan.refusals?.[++creations];
					if (refusal) throw refusal;
					story.shown.push({ nonce, text });
					return moment() ? never : { messageId: `m${story.shown.length}` };
				},
				async find(_target, nonce) {
					if (moment()) return never;
					const at = story.shown.findIndex((each) => each.nonce === nonce);
					return at < 0 ? undefined : { messageId: `m${at + 1}` };
				},
				health: async () => ({ ok: true, detail: "" }),
			};
			const say = (status: SendStatus) => {
				if (status.type === "call" || moment()) return;
				if (status.type === "message_sent" && !status.final) piece(status);
				else if (status.type === "message_sent") resolve({ type: "sent", messageId: status.messageId });
				else if (status.type === "delivery_error") resolve({ ...status, type: "refused" });
				else if (status.type === "found") resolve(status);
			};
			const desk = createAdapterContext({
				platform,
				session,
				sent: new SentLog(undefined, clock),
				account: "a",
				clock,
				random: Math.random,
				log: silentLog,
				say: say as never,
				ready: () => Promise.resolve(),
				limits: { gate: { patienceMs: { final: 0, create: 0, edit: 0, preview: 0, typing: 0 } } },
			});
			createSends(desk).accept(line);
			return promise;
		}

		const account = { config: {}, streaming: {}, rate: createRatePause(clock), send: () => ({ request, typing() {} }) };
		const stop = new AbortController();
		const context: DeliveryContext = {
			live: tracked,
			info,
			bus,
			clock,
			log: silentLog,
			limits: FAST,
			random: () => 0.5,
			target: { to: "c" },
			signal: stop.signal,
			options: {},
			reasoning: false,
			parts: true,
			files: new Map(),
			account: account as never,
		};
		const outcome = await Promise.race([deliverBySend(context), death]);
		if (outcome !== "dead") await tracked.recorded();
		return outcome;
	}

	try {
		for (;;) {
			const outcome = await daemon();
			if (outcome !== "dead") return { ...story, outcome, row: rows.get("dlv_1")! };
		}
	} finally {
		await store.close();
	}
}

const whole = (story: Story) => normalise(story.shown.map(({ text }) => text).join("\n"));
const states = (story: Story) => story.row.messages.map(({ state }) => state);

function expectOnce(story: Story, text: string): void {
	expect(story.outcome).toEqual({ state: "complete" });
	expect(whole(story)).toBe(normalise(text));
	// A line that is sent again after a crash has the same facts of the run.
	for (const line of story.lines) expect(line).toMatchObject({ facts: FACTS });
	expect(new Set(story.shown.map(({ nonce }) => nonce)).size).toBe(story.shown.length);
	expect(story.row.cursor).toBe(text.length);
	expect(story.row.messages.map(({ messageId }) => messageId)).toEqual(story.shown.map((_, n) => `m${n + 1}`));
	// The ranges on record are contiguous, so the shown part and the remainder are known at any moment.
	let at = 0;
	for (const { from, to } of story.row.messages) {
		expect(from).toBe(at);
		at = to!;
	}
}

const FACTS = { agent: "writer", model: "model-writer", usage: { input: 3, output: 4 } };
const TEXT = "One two three.\n\n```js\nconst four = 5;\nsix(7);\n```\n\nEight nine ten eleven twelve.";

describe("a send in several messages", () => {
	it("I7: killed at every moment, adapter or daemon, each piece is there once", { timeout: 300_000 }, async () => {
		const calm = await live({ text: TEXT, textMax: 24 });
		expectOnce(calm, TEXT);
		expect(calm.shown.length).toBeGreaterThan(3);
		const found = new Set<number>();
		for (let at = 1; at <= calm.moments; at++) {
			for (const who of ["adapter", "daemon"] as const) {
				const story = await live({ text: TEXT, textMax: 24, instant: at % 2 === 0, deaths: [{ at, who }] });
				expectOnce(story, TEXT);
				// The text after a crash is cut at the same positions.
				expect(story.shown.map(({ text }) => text)).toEqual(calm.shown.map(({ text }) => text));
				for (const line of story.lines) if (line.type === "find") found.add(line.done?.pieces ?? 0);
			}
		}
		expect(found.size).toBeGreaterThan(2);
	});

	it("I7: any text, any number of pieces, killed again and again", { timeout: 300_000 }, async () => {
		const text = fc.string({ minLength: 1, maxLength: 300, unit: "grapheme-ascii" }).filter((each) => /\S/.test(each));
		const death = fc.record({ at: fc.nat({ max: 60 }), who: fc.constantFrom<Victim>("adapter", "daemon") });
		await fc.assert(
			fc.asyncProperty(text, fc.integer({ min: 16, max: 80 }), fc.array(death, { maxLength: 6 }), async (...given) => {
				const [source, textMax, deaths] = given;
				const story = await live({ text: source, textMax, deaths, instant: source.length % 2 === 0 });
				expect(story.outcome).toEqual({ state: "complete" });
				expect(whole(story)).toBe(normalise(source));
				expect(story.row.cursor).toBe(source.length);
			}),
			{ numRuns: atEffort(240, 60) },
		);
	});

	it("I7: a passing refusal after the first piece: the rest is said again, the piece is not", async () => {
		const refusals = { 2: new PlatformError("unavailable", "down"), 3: new PlatformError("unavailable", "down") };
		const story = await live({ text: TEXT, textMax: 24, refusals });
		expectOnce(story, TEXT);
		expect(story.lines.map((line) => ("done" in line ? line.done?.pieces : undefined))).toEqual([undefined, 1, 1]);
	});

	it("I7: a refusal for good after the first piece: what is out is on record, the rest has failed", async () => {
		const story = await live({ text: TEXT, textMax: 24, refusals: { 2: new PlatformError("denied", "no more") } });
		expect(story.outcome).toEqual({ state: "failed", error: "denied: no more" });
		expect(story.row.messages).toMatchObject([{ state: "sent", messageId: "m1", from: 0 }]);
		expect(story.row.cursor).toBe(story.row.messages[0]!.to);
		expect(story.row.cursor).toBeLessThan(TEXT.length);
	});

	it("where the platform cannot tell, the piece in doubt is flagged and those before it are not", async () => {
		const story = await live({ text: TEXT, textMax: 24, reconcile: "none", deaths: [{ at: 5, who: "daemon" }] });
		expect(story.outcome.state).toBe("unknown");
		expect(states(story)).toEqual(["sent", "unknown"]);
		expect(story.shown.length).toBe(2);
	});

	it("an adapter that cannot go on inside a line is never asked to say it again", async () => {
		const fields = ["runId", "offset"] as const;
		const refusals = { 2: new PlatformError("unavailable", "down") };
		const refused = await live({ text: TEXT, textMax: 24, fields, refusals });
		expect(refused.outcome).toEqual({ state: "failed", error: "Only a part was sent: down" });
		expect(states(refused)).toEqual(["sent"]);
		for (const who of ["adapter", "daemon"] as const) {
			const lost = await live({ text: TEXT, textMax: 24, fields, deaths: [{ at: 4, who }] });
			expect(lost.outcome.state).toBe("unknown");
			expect(states(lost)).toEqual(["sent", "unknown"]);
			expect(lost.shown.length).toBe(1);
			expect(lost.lines.length).toBe(1);
		}
	});
});
