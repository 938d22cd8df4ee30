/** A store with an await at every call: what relies on an answer in the tick of the call fails behind it. */

import type { Bus, LogWriter } from "../src/bus/bus.ts";
import type { Ledger } from "../src/ledger/ledger.ts";

let turns = 0;

/** Another number of turns of the loop each time, so that calls overtake one another. */
async function later<T>(work: () => T | Promise<T>): Promise<T> {
	turns = (turns + 3) % 7;
	for (let n = turns; n >= 0; n--) await new Promise((resolve) => setImmediate(resolve));
	return work();
}

export function slowLedger(ledger: Ledger): Ledger {
	const slow = (part: object) =>
		new Proxy(part, {
			get: (target, name) => {
				const read = Reflect.get(target, name) as (...args: unknown[]) => unknown;
				return (...args: unknown[]) => later(() => read(...args));
			},
		});
	const parts = Object.entries(ledger).map(([name, part]) => [name, typeof part === "object" ? slow(part) : part]);
	return Object.fromEntries(parts) as Ledger;
}

/** The order of calls stays; their outcomes are told late. */
export function slowBus(bus: Bus): Bus {
	const late = async <T>(outcome: Promise<T>): Promise<T> => {
		outcome.catch(() => {});
		return later(() => outcome);
	};
	const slowWriter = (writer: LogWriter): LogWriter =>
		new Proxy(writer, {
			get(target, name) {
				const member = Reflect.get(target, name) as unknown;
				if (name === "seal") return (...args: Parameters<LogWriter["seal"]>) => late(target.seal(...args));
				return typeof member === "function" ? member.bind(target) : member;
			},
		});
	/** What a test puts in the place of a member. */
	const replaced = new Map<PropertyKey, unknown>();
	return new Proxy(bus, {
		set: (_target, name, value) => replaced.set(name, value) === replaced,
		get(target, name) {
			if (replaced.has(name)) return replaced.get(name);
			const member = Reflect.get(target, name) as unknown;
			if (name === "create")
				return (...args: Parameters<Bus["create"]>) => late(target.create(...args)).then(slowWriter);
			if (name === "reopen")
				return (...args: Parameters<Bus["reopen"]>) => late(target.reopen(...args)).then(slowWriter);
			if (name === "write") return (...args: Parameters<Bus["write"]>) => late(target.write(...args));
			return typeof member === "function" ? member.bind(target) : member;
		},
	});
}
