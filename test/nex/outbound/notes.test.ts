/** The notes and state of an account are in the store: they move to another daemon, and its processes do not overwrite each other's changes. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { type OpenStore, openStore } from "../../store.ts";
import { createRig, declareDead, finishedRun, onlyMessages, type Rig, rigForTest, sharingRig, until } from "./rig.ts";

const ADAPTER = fileURLToPath(new URL("./adapters/noting-platform.ts", import.meta.url));
const owner = { channel: "noting", account: "main" };

type Stored = ReturnType<OpenStore>["stored"];

/** `now` is what is on record in the store that is open. */
type Daemon = Rig & { now(): Stored["notes"] };

const noting: Parameters<typeof sharingRig>[0] = (channel, settings) => ({
	noting: { ...channel("full", settings), command: [process.execPath, "--conditions=nexus-source", ADAPTER] },
});

/** A separate daemon on another one's store and platform. */
function daemon(first?: Rig): Daemon {
	let notes: Stored["notes"] | undefined;
	const rig = sharingRig(noting, first, ({ stored }) => ({ notes } = stored));
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

/** Delivers a text that the first daemon's adapter creates and does not tell of, and has another daemon take the delivery over. */
async function takenOver(to: string) {
	const one = daemon();
	const runId = await finishedRun(one.bus, ["Hello."]);
	const { id } = await one.deliver({ runId, target: { to } });
	const last = to === "known" ? "sent" : "leaving";
	await until(() => notesIn(one).at(-1)?.at === last && one.calls().length === 1, "the message was created");
	const two = daemon(one);
	declareDead(one);
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
	const { id } = await rig.deliver({ text: "Hello." });
	await until(() => refused > 0, "the note is said");
	expect(rig.calls()).toEqual([]);
	declareDead(rig);
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
	await rig.send({ text: "Hello.", target: { to: "states" } });
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
		expect(await rig.send({ text })).toMatchObject({ state: "complete" });
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
	const rig = rigForTest((channel) => noting(channel, {}), { open });
	expect(await rig.send({ text: "Hello." })).toMatchObject({ state: "complete" });
	expect(rig.calls()).toHaveLength(1);
	expect(rig.outbound.accounts()[0]).toMatchObject({ restarts: 2 });
});

it("ST26: an adapter that does not leave its notes to the daemon keeps its files to itself", async () => {
	const rig = createRig("full");
	const folder = join(rig.dir, "adapters", "full", "main");
	mkdirSync(folder, { recursive: true });
	writeFileSync(join(folder, "state.json"), "not JSON at all");
	expect(await rig.send({ text: "Hello." })).toMatchObject({ state: "complete" });
	expect(readFileSync(join(folder, "state.json"), "utf8")).toBe("not JSON at all");
});
