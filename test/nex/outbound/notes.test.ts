/** The notes and state of an account are in the store: they move to another daemon, and its processes do not overwrite each other's changes. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { type OpenStore, openStore } from "../../store.ts";
import { createRigWith, finishedRun, onlyMessages, type Rig, until } from "./rig.ts";

let rigs: Rig[] = [];
afterEach(async () => {
	// Rigs that use another's files end first.
	for (const rig of rigs.reverse()) await rig.close();
	rigs = [];
});

const ADAPTER = fileURLToPath(new URL("./adapters/noting-platform.ts", import.meta.url));
const account = { channel: "noting", id: "main" };
const owner = { channel: "noting", account: "main" };
const target = { to: "c" };

type Stored = ReturnType<OpenStore>["stored"];

/** `now` is what is on record in the store that is open. */
type Daemon = Rig & { now(): Stored["notes"] };

/** A separate daemon on another one's store and platform. */
function daemon(first?: Rig): Daemon {
	const settings: Record<string, string> = first ? { file: join(first.dir, "platform.jsonl") } : {};
	let notes: Stored["notes"] | undefined;
	const open: OpenStore = (own) => {
		const store = openStore(first ? join(first.dir, "nexus.db") : own, { shared: true });
		({ notes } = store.stored);
		return store;
	};
	const command = [process.execPath, "--conditions=nexus-source", ADAPTER];
	const rig = createRigWith((channel) => ({ noting: { ...channel("full", settings), command } }), { open });
	rigs.push(rig);
	return Object.assign(rig, { now: () => notes! });
}

const filesOf = ({ dir }: Rig) => {
	const folder = join(dir, "adapters", "noting", "main");
	mkdirSync(folder, { recursive: true });
	return { state: join(folder, "state.json"), notes: join(folder, "state.json.sent") };
};

const notesIn = (rig: Daemon) =>
	rig
		.now()
		.list(owner)
		.map((text) => JSON.parse(text) as { nonce: string; at: string });

/** As a daemon does that has waited long enough for a sign of life. */
function declareDead(first: Rig, { bus }: Rig): void {
	const db = new DatabaseSync(join(first.dir, "nexus.db"));
	db.prepare("UPDATE node SET dead = 1 WHERE id = ?").run(bus.node);
	db.close();
}

/** Delivers a text that the first daemon's adapter creates and does not tell of, and has another daemon take the delivery over. */
async function takenOver(to: string) {
	const one = daemon();
	const runId = await finishedRun(one.bus, ["Hello."]);
	const { id } = await one.outbound.deliver({ runId, account, target: { to } });
	const last = to === "known" ? "sent" : "leaving";
	await until(() => notesIn(one).at(-1)?.at === last && one.calls().length === 1, "the message was created");
	const two = daemon(one);
	declareDead(one, one);
	await two.outbound.start();
	return { end: await two.outbound.settled(id), calls: one.calls() };
}

it("ST26, I7: a create that was under way when its daemon died is not made again by another daemon, from another folder", async () => {
	const { calls, end } = await takenOver("hangs");
	expect(end.state).toBe("unknown");
	expect(calls).toHaveLength(1);
});

it("ST26, I7: a message whose answer only the dead daemon's adapter had is known to the next", async () => {
	const { calls, end } = await takenOver("known");
	expect(end).toMatchObject({ state: "complete", messages: [{ messageId: calls[0]!.nonce, state: "sent" }] });
	expect(calls).toHaveLength(1);
});

it("ST26: a message leaves once its note is on record, and a daemon that is fenced answers none", async () => {
	const rig = daemon();
	const write = rig.bus.write.bind(rig.bus);
	const held = Promise.withResolvers<void>();
	let refused = 0;
	rig.bus.write = async (writes, patienceMs) => {
		if (writes.some(({ table }) => table === "notes") && ++refused === 1) await held.promise;
		await write(writes, patienceMs);
	};
	const { id } = await rig.outbound.deliver({ text: "Hello.", account, target });
	await until(() => refused > 0, "the note is said");
	expect(rig.calls()).toEqual([]);
	declareDead(rig, rig);
	held.resolve();
	await rig.outbound.settled(id);
	expect(rig.calls()).toEqual([]);
	expect(notesIn(rig)).toEqual([]);
});

it("ST26: the processes of an account set their state at once, and nothing is lost", async () => {
	const rig = daemon();
	await rig.outbound.info("noting");
	const heard: string[] = [];
	rig.outbound.monitor(
		"noting",
		"main",
		onlyMessages(async ({ text }) => void heard.push(text)),
	);
	const { id } = await rig.outbound.deliver({ text: "Hello.", account, target: { to: "states" } });
	await rig.outbound.settled(id);
	await until(() => heard.length === 1, "the monitor has set its keys");
	expect(heard).toEqual(["7"]);
	const all = ["send", "monitor"].flatMap((name) => Array.from({ length: 300 }, (_, n) => [`${name}${n}`, String(n)]));
	expect(Object.fromEntries(rig.now().state(owner))).toEqual(Object.fromEntries(all));
	expect(JSON.parse(readFileSync(filesOf(rig).state, "utf8"))).toEqual(Object.fromEntries(all));
	// State that is set while the adapter stops is kept as well.
	await rig.outbound.stop(0);
	expect(rig.now().state(owner).at(-1)).toEqual(["stopped", "in good order"]);
});

it("ST26: what a data directory of before has in its files is taken into the store once", async () => {
	const rig = daemon();
	const files = filesOf(rig);
	// Two calls left, one of them was refused.
	const lines = ["leaving", "leaving", "refused"].map((at) => JSON.stringify({ nonce: "old", at }));
	writeFileSync(files.notes, `\n${lines.join("\n")}`);
	writeFileSync(files.state, JSON.stringify({ position: "7" }));
	for (const text of ["One.", "Two."]) {
		const { id } = await rig.outbound.deliver({ text, account, target });
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		await rig.restart();
	}
	const old = notesIn(rig).filter(({ nonce }) => nonce === "old");
	expect(old.map(({ at }) => at).toSorted()).toEqual(["leaving", "leaving", "refused"]);
	expect(rig.now().state(owner)).toEqual([["position", "7"]]);
});

it("ST26: without the account's notes nothing is started; it is when they can be read", async () => {
	let refused = 0;
	const open: OpenStore = (path) => {
		const store = openStore(path);
		const { notes } = store.ledger;
		const list: typeof notes.list = (of) => {
			if (++refused <= 2) throw new Error("the store cannot be reached");
			return notes.list(of);
		};
		return { ...store, ledger: { ...store.ledger, notes: { ...notes, list } } };
	};
	const command = [process.execPath, "--conditions=nexus-source", ADAPTER];
	const rig = createRigWith((channel) => ({ noting: { ...channel("full"), command } }), { open });
	rigs.push(rig);
	const { id } = await rig.outbound.deliver({ text: "Hello.", account, target });
	expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
	expect(rig.calls()).toHaveLength(1);
	expect(rig.outbound.accounts()[0]).toMatchObject({ restarts: 2 });
});

it("ST26: an adapter that does not leave its notes to the daemon keeps its files to itself", async () => {
	const rig = createRigWith((channel) => ({ full: channel("full") }));
	rigs.push(rig);
	const folder = join(rig.dir, "adapters", "full", "main");
	mkdirSync(folder, { recursive: true });
	writeFileSync(join(folder, "state.json"), "not JSON at all");
	const { id } = await rig.outbound.deliver({ text: "Hello.", account: { channel: "full", id: "main" }, target });
	expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
	expect(readFileSync(join(folder, "state.json"), "utf8")).toBe("not JSON at all");
});
