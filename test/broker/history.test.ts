import fc from "fast-check";
import { expect, test } from "vitest";
import { pastTurnOf } from "../../packages/daemon/src/broker/context.ts";
import { History, SESSION_CHARS } from "../../packages/daemon/src/broker/history.ts";
import { BROKER_LIMITS } from "../../packages/daemon/src/broker/port.ts";
import type { Ledger } from "../../packages/daemon/src/ledger/ledger.ts";
import { type Turn, turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { fullTurn, openLedger, turnOf } from "../ledger/rig.ts";

function open(limits: Partial<typeof BROKER_LIMITS> = {}) {
	const { ledger, write } = openLedger(":memory:");
	let read = 0;
	const counted: Ledger = {
		...ledger,
		turns: {
			...ledger.turns,
			async list(query) {
				const turns = await ledger.turns.list(query);
				read += turns.length;
				return turns;
			},
		},
	};
	return { write, ledger, history: new History(counted, { ...BROKER_LIMITS, ...limits }), read: () => read };
}

const settle = ({ write }: ReturnType<typeof open>, n: number, session: string, text = `answer ${n}`) => {
	const turn = turnOf(`run_${n}`, { session, messages: [{ role: "assistant", text }] });
	write(turnWrites.settle(turn));
	return pastTurnOf(turn);
};

test("for all orders of settling and asking it is what the ledger has", async () => {
	await fc.assert(
		fc.asyncProperty(
			fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.boolean()), { maxLength: 60 }),
			async (plan) => {
				const under = open({ contextTurnsMax: 5, historyCharsMax: 100 + SESSION_CHARS });
				const settled: Record<string, ReturnType<typeof pastTurnOf>[]> = { a: [], b: [], c: [] };
				for (const [n, [session, asks]] of plan.entries()) {
					settled[session]!.unshift(settle(under, n, session));
					if (asks) expect(await under.history.past(session)).toEqual(settled[session]!.slice(0, 5));
				}
			},
		),
	);
});

test("a turn is read once while its session is in use", async () => {
	const under = open();
	for (let n = 0; n < 50; n++) settle(under, n, "main");
	expect(await under.history.past("main")).toHaveLength(50);
	expect(under.read()).toBe(50);
	settle(under, 50, "main");
	expect(await under.history.past("main")).toHaveLength(51);
	await under.history.past("main");
	expect(under.read()).toBe(51);
});

/** A run of this process, from its look at the past to its turn on record. */
async function ownRun(under: ReturnType<typeof open>, turn: Turn): Promise<void> {
	await under.history.past(turn.session, turn.runId);
	under.write(turnWrites.settle(turn));
	under.history.settled(turn);
}

const said = (text: string): Turn["messages"] => [
	{ role: "user", text: "a question" },
	{ role: "assistant", text },
];

test("a turn that a run of this process made is not read back", async () => {
	const under = open();
	for (let n = 0; n < 3; n++)
		await ownRun(under, turnOf(`run_${n}`, { session: "main", messages: said(`answer ${n}`) }));
	const past = await under.history.past("main");
	expect(past.map(({ messages }) => messages[1]!.text)).toEqual(["answer 2", "answer 1", "answer 0"]);
	expect(under.read()).toBe(0);
});

test("for all turns of this process and of others, kept or read, it is what the ledger has", async () => {
	const text = fc.oneof(fc.string(), fc.constantFrom("a\0b", "\ud800", ""));
	const kind = fc.constantFrom("own" as const, "another's" as const, "not on record" as const);
	await fc.assert(
		fc.asyncProperty(fc.array(fc.tuple(kind, text, fc.boolean()), { maxLength: 30 }), async (plan) => {
			const under = open({ contextTurnsMax: 5 });
			for (const [n, [whose, answer, withTool]] of plan.entries()) {
				const toolCalls = withTool ? fullTurn.toolCalls : [];
				const turn = turnOf(`run_${n}`, { session: "main", messages: said(answer), toolCalls });
				if (whose === "own") await ownRun(under, turn);
				else if (whose === "another's") under.write(turnWrites.settle(turn));
				else {
					await under.history.past("main", turn.runId);
					under.history.settled(turn);
				}
				const stored = await under.ledger.turns.list({ session: "main", limit: 5 });
				expect(await under.history.past("main")).toEqual(stored.map(pastTurnOf));
			}
		}),
	);
});

test("a reader meanwhile reads the turn from the store: it may already be counted", async () => {
	const under = open();
	const turn = turnOf("run_1", { session: "main", messages: said("an answer") });
	await under.history.past("main", "run_1");
	under.write(turnWrites.settle(turn));
	await under.history.past("main", "run_2");
	under.history.settled(turn);
	expect(await under.history.past("main")).toEqual([pastTurnOf(turn)]);
});

test("A27: a turn that was rolled back is in no context, whether it was kept or not", async () => {
	await fc.assert(
		fc.asyncProperty(
			fc.array(fc.tuple(fc.constantFrom("own" as const, "another's" as const), fc.nat(9), fc.boolean()), {
				maxLength: 20,
			}),
			async (plan) => {
				const under = open({ contextTurnsMax: 50 });
				for (const [n, [whose, back, rollsBack]] of plan.entries()) {
					const turn = turnOf(`run_${n}`, { session: "main", messages: said(`answer ${n}`) });
					if (whose === "own") await ownRun(under, turn);
					else under.write(turnWrites.settle(turn));
					if (rollsBack && back <= n) under.write(turnWrites.rollBack(`run_${n - back}`));
					const stored = await under.ledger.turns.list({ session: "main", limit: 50 });
					const left = stored.filter(({ rolledBack }) => rolledBack !== true);
					expect(await under.history.past("main")).toEqual(left.map(pastTurnOf));
				}
			},
		),
	);
});

test("no more is read than a context can hold", async () => {
	const under = open({ contextTokensMax: 1000 });
	for (let n = 0; n < 100; n++) settle(under, n, "main", "x".repeat(400));
	expect(await under.history.past("main")).toHaveLength(9);
	expect(under.read()).toBeLessThan(30);
});

test("I11: sessions not used for long are let go", async () => {
	const under = open({ historyCharsMax: 1000 + 2 * SESSION_CHARS });
	for (const [n, session] of ["a", "b", "c"].entries()) {
		settle(under, n, session, "x".repeat(400));
		await under.history.past(session);
	}
	expect(under.read()).toBe(3);
	await under.history.past("c");
	await under.history.past("b");
	expect(under.read()).toBe(3);
	await under.history.past("a");
	expect(under.read()).toBe(4);
});

test("I11: sessions without a past count, too", async () => {
	const under = open({ historyCharsMax: 2 * SESSION_CHARS });
	for (const session of ["a", "b", "c"]) await under.history.past(session, `run_${session}`);
	for (const session of ["a", "c"]) {
		const turn = turnOf(`run_${session}`, { session, messages: [] });
		under.write(turnWrites.settle(turn));
		under.history.settled(turn);
	}
	await under.history.past("c");
	expect(under.read()).toBe(0);
	await under.history.past("a");
	expect(under.read()).toBe(1);
});

test("two that ask for a session at once are counted once: others are not forgotten for it", async () => {
	const text = "x".repeat(100);
	const { chars } = pastTurnOf(turnOf("run_0", { messages: [{ role: "assistant", text }] }));
	const under = open({ historyCharsMax: 2 * (chars + SESSION_CHARS) });
	settle(under, 1, "a", text);
	settle(under, 2, "b", text);
	await Promise.all([under.history.past("b"), under.history.past("b")]);
	await under.history.past("a");
	const before = under.read();
	await under.history.past("b");
	expect(under.read()).toBe(before);
});

test("a turn that is saved while the past is read appears once afterwards, and none is missing", async () => {
	const under = open();
	for (let n = 0; n < 3; n++) settle(under, n, "main");
	const { ledger } = under;
	let isLate = true;
	const slow: Ledger = {
		...ledger,
		turns: {
			...ledger.turns,
			async list(query) {
				if (isLate) settle(under, 3, "main");
				isLate = false;
				return ledger.turns.list(query);
			},
		},
	};
	const history = new History(slow, BROKER_LIMITS);
	await history.past("main", "run_3");
	const said = (await history.past("main")).map(({ messages }) => messages.map(({ text }) => text));
	expect(said).toEqual([["answer 3"], ["answer 2"], ["answer 1"], ["answer 0"]]);
});
