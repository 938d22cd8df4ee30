import fc from "fast-check";
import { expect, test } from "vitest";
import { pastTurnOf } from "../../src/broker/context.ts";
import { History } from "../../src/broker/history.ts";
import { BROKER_LIMITS } from "../../src/broker/limits.ts";
import { sqliteLedger } from "../../src/ledger/ledger.ts";
import { openSqlite } from "../../src/std/sqlite.ts";
import { turnOf } from "../ledger/contract.ts";

function open(limits: Partial<typeof BROKER_LIMITS> = {}) {
	const ledger = sqliteLedger(openSqlite(":memory:", "process"));
	let read = 0;
	const counted = {
		...ledger,
		turns(query: Parameters<typeof ledger.turns>[0]) {
			const turns = ledger.turns(query);
			read += turns.length;
			return turns;
		},
	};
	return { ledger, history: new History(counted, { ...BROKER_LIMITS, ...limits }), read: () => read };
}

const settle = ({ ledger }: ReturnType<typeof open>, n: number, session: string, text = `answer ${n}`) => {
	const turn = turnOf(`run_${n}`, { session, messages: [{ role: "assistant", text }] });
	ledger.settle(turn);
	return pastTurnOf(turn);
};

test("for all orders of settling and asking it is what the ledger has", () => {
	fc.assert(
		fc.property(fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.boolean()), { maxLength: 60 }), (plan) => {
			const under = open({ contextTurnsMax: 5, historyCharsMax: 100 });
			const settled: Record<string, ReturnType<typeof pastTurnOf>[]> = { a: [], b: [], c: [] };
			for (const [n, [session, asks]] of plan.entries()) {
				settled[session]!.unshift(settle(under, n, session));
				if (asks) expect(under.history.past(session)).toEqual(settled[session]!.slice(0, 5));
			}
		}),
	);
});

test("a turn is read once while its session is in use", () => {
	const under = open();
	for (let n = 0; n < 50; n++) settle(under, n, "main");
	expect(under.history.past("main")).toHaveLength(50);
	expect(under.read()).toBe(50);
	settle(under, 50, "main");
	expect(under.history.past("main")).toHaveLength(51);
	under.history.past("main");
	expect(under.read()).toBe(51);
});

test("no more is read than a context can hold", () => {
	const under = open({ contextTokensMax: 1000 });
	for (let n = 0; n < 100; n++) settle(under, n, "main", "x".repeat(400));
	expect(under.history.past("main")).toHaveLength(9);
	expect(under.read()).toBeLessThan(30);
});

test("I11: sessions not used for long are let go", () => {
	const under = open({ historyCharsMax: 1000 });
	for (const [n, session] of ["a", "b", "c"].entries()) {
		settle(under, n, session, "x".repeat(400));
		under.history.past(session);
	}
	expect(under.read()).toBe(3);
	under.history.past("c");
	under.history.past("b");
	expect(under.read()).toBe(3);
	under.history.past("a");
	expect(under.read()).toBe(4);
});
