/** Daemons that die or are paused: what they left is taken over once, and nothing leaves them afterwards. */

import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { createVerifier, decodeFrame } from "../../packages/protocol/src/protocol.ts";
import { until } from "../until.ts";
import { call, cluster, LEASE_MS, send, TOKEN } from "./rig.ts";

/** Rows of the shared file, past all daemons. */
function rowsOf(path: string, sql: string): Record<string, unknown>[] {
	const db = new DatabaseSync(path, { readOnly: true });
	try {
		return db.prepare(sql).all() as Record<string, unknown>[];
	} finally {
		db.close();
	}
}

interface Run {
	status?: string;
	reason?: string;
}

it("I3, I5, I10: another daemon ends the run of a killed one within the lease and two seconds, and answers its messages once", async () => {
	const { join, joinProcess, path } = cluster();
	const [one, two] = [await join(), await join()];
	const dying = await joinProcess();
	const { run_id: run } = await send(dying, "s", "hold");
	await send(dying, "s", "second");
	await send(dying, "s", "third");
	await until("the text is readable", () =>
		rowsOf(path, "SELECT count(*) n FROM inbound WHERE state = 'queued'").some(({ n }) => n === 2),
	);
	const killedAt = performance.now();
	dying.signal("SIGKILL");
	await dying.ended;
	const ended = async () => (await call<Run>(one, `/v1/runs/${run}`)).status === "failed";
	await until("the run has ended as crashed", ended);
	expect(performance.now() - killedAt).toBeLessThan(LEASE_MS + 2000);
	expect(await call<Run>(two, `/v1/runs/${run}`)).toMatchObject({ status: "failed", reason: "crashed" });
	const turns = () => call<{ turns: { user: string; status: string }[] }>(one, "/v1/sessions/s/turns");
	await until("every message has its run", async () => {
		const states = rowsOf(path, "SELECT state, run_id FROM inbound ORDER BY seq");
		return states.every(({ state }) => state === "started") && (await turns()).turns.length === 3;
	});
	const started = rowsOf(path, "SELECT run_id FROM inbound").map(({ run_id }) => run_id);
	expect(new Set(started).size).toBe(3);
	const headers = { authorization: `Bearer ${TOKEN}` };
	const text = await (await fetch(`${two.url}/v1/runs/${run}/frames`, { headers })).text();
	const verifier = createVerifier();
	for (const line of text.trimEnd().split("\n")) expect(verifier.push(decodeFrame(line))).toBeUndefined();
});

it("I7: a daemon that was paused for longer than its lease ends with 75, and its run stays as the others ended it", async () => {
	const { join, joinProcess, path } = cluster();
	const one = await join();
	const paused = await joinProcess();
	const { run_id: run } = await send(paused, "s", "hold");
	paused.signal("SIGSTOP");
	await until(
		"the run has ended as crashed",
		async () => (await call<Run>(one, `/v1/runs/${run}`)).status === "failed",
	);
	const journal = () => rowsOf(path, "SELECT id, dead FROM node ORDER BY id");
	expect(journal()).toMatchObject([{ dead: 0 }, { dead: 1 }]);
	paused.signal("SIGCONT");
	await until("it is not ready any more", async () => (await fetch(`${paused.url}/readyz`)).status === 503);
	expect(await paused.ended).toBe(75);
	expect(await call<Run>(one, `/v1/runs/${run}`)).toMatchObject({ reason: "crashed" });
});

it("ST19: a daemon that stops in order is taken over at once, and no other is declared dead", async () => {
	const { join, path } = cluster();
	const [one, two] = [await join(), await join()];
	const { run_id: run } = await send(two, "s", "hold");
	await two.close();
	expect(await call<Run>(one, `/v1/runs/${run}`)).toMatchObject({ status: "aborted" });
	expect(rowsOf(path, "SELECT dead FROM node ORDER BY id")).toEqual([{ dead: 0 }, { dead: 1 }]);
	expect((await fetch(`${one.url}/readyz`)).status).toBe(200);
});
