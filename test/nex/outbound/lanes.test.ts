/** Answers of one session in one chat are delivered one after another; other deliveries do not wait for them. */

import { expect, it } from "vitest";
import type { Delivery } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { createLanes } from "../../../packages/daemon/src/nex/delivery/delivery-runner.ts";

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));
const row = (target: object = { to: "c1" }, more: object = {}) =>
	({ channel: "chat", account: "main", target, ...more }) as unknown as Delivery;
const never = new AbortController().signal;

function world() {
	const lanes = createLanes();
	const begun: string[] = [];
	const ends = new Map<string, (cause?: Error) => void>();
	const begin = (name: string, of = row(), session: string | undefined = "s", signal = never) =>
		lanes.inOrder(of, Promise.resolve(session), signal, () => {
			begun.push(name);
			return new Promise<string>((resolve, reject) => {
				ends.set(name, (cause) => (cause ? reject(cause) : resolve(name)));
			});
		});
	return { begin, begun, ends };
}

it("one after another, also when one fails", async () => {
	const { begin, begun, ends } = world();
	const all = [begin("one"), begin("two"), begin("three")];
	await tick();
	expect(begun).toEqual(["one"]);
	const failed = expect(all[0]).rejects.toThrow("odd");
	ends.get("one")!(new Error("odd"));
	await failed;
	await tick();
	expect(begun).toEqual(["one", "two"]);
	ends.get("two")!();
	expect(await all[1]).toBe("two");
	await tick();
	expect(begun).toEqual(["one", "two", "three"]);
});

it.each([
	["another chat", row({ to: "c2" }), "s"],
	["another thread", row({ to: "c1", thread_id: "t" }), "s"],
	["another session", row(), "other"],
	["another account", row(undefined, { account: "second" }), "s"],
	["another channel", row(undefined, { channel: "other" }), "s"],
])("%s does not wait", async (_name, of, session) => {
	const { begin, begun } = world();
	void begin("one");
	void begin("other", of, session);
	await tick();
	expect(begun).toEqual(["one", "other"]);
});

it("one that gives up waiting lets the next have its turn, and not before", async () => {
	const { begin, begun, ends } = world();
	const stop = new AbortController();
	void begin("one");
	const gone = expect(begin("two", row(), "s", stop.signal)).rejects.toThrow();
	void begin("three");
	stop.abort();
	await gone;
	await tick();
	expect(begun).toEqual(["one"]);
	ends.get("one")!();
	await tick();
	expect(begun).toEqual(["one", "three"]);
});

it("ST11: the order of the calls counts, not which session is found first", async () => {
	const lanes = createLanes();
	const begun: string[] = [];
	const found: ((session: string) => void)[] = [];
	for (const name of ["one", "two"]) {
		const session = new Promise<string>((resolve) => found.push(resolve));
		void lanes.inOrder(row(), session, never, async () => void begun.push(name));
	}
	found[1]!("s");
	await tick();
	expect(begun).toEqual([]);
	found[0]!("s");
	await tick();
	expect(begun).toEqual(["one", "two"]);
});
