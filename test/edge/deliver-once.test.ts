/** A text that is sent again with the same idempotency key is delivered once. */

import { expect, it, onTestFinished } from "vitest";
import type { Channels } from "../../packages/daemon/src/edge/edge.ts";
import { createOutbound, type Outbound } from "../../packages/daemon/src/nex/nex.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { freshFolder } from "../runtime/folder.ts";
import { type OpenStore, openStore, refuseWrites, type TestStore } from "../store.ts";
import { rigForTest } from "./rig.ts";

async function place() {
	let outbound: Outbound | undefined;
	let store: TestStore | undefined;
	const open: OpenStore = (...args) => (store = openStore(...args));
	const channels = { outbound: { deliver: (request) => outbound!.deliver(request) } as Partial<Outbound> } as Channels;
	const rig = await rigForTest({ deps: { channels }, open });
	// An adapter that does nothing: only what is on record counts here.
	const adapters = { chat: { command: [process.execPath, "-e", ""], accounts: { main: { settings: {} } } } };
	const { bus, ledger } = rig;
	outbound = createOutbound({ bus, ledger, dataDir: freshFolder(), adapters, log: silentLog });
	onTestFinished(() => outbound.stop(0));
	const post = async (body: object) => {
		const response = await rig.post("/v1/deliveries", {
			channel: "chat",
			account: "main",
			target: { to: "1", topic: 2 },
			...body,
		});
		return { status: response.status, body: (await response.json()) as { delivery_id?: string } };
	};
	const rows = async () => (await rig.ledger.deliveries.list({ limit: 9 })).map(({ id }) => id);
	return { post, rows, store: store! };
}

it("P6.5: the same key is the same delivery, at the same time too, and another request with it a conflict", async () => {
	const { post, rows } = await place();
	const wanted = { text: "hello", idempotency_key: "k" };
	const [one, two] = await Promise.all([post(wanted), post({ ...wanted, target: { topic: 2, to: "1" } })]);
	const again = await post(wanted);
	expect([one.status, two.status, again.status]).toEqual([202, 202, 202]);
	expect(new Set([one, two, again].map(({ body }) => body.delivery_id)).size).toBe(1);
	expect((await post({ ...wanted, text: "other" })).status).toBe(409);
	expect((await post({ ...wanted, target: { to: "2" } })).status).toBe(409);
	expect((await post({ ...wanted, tools: true })).status).toBe(409);
	expect((await post({ ...wanted, account: "other" })).status).toBe(409);
	expect(await rows()).toEqual([one.body.delivery_id]);
	expect((await post({ text: "hello", idempotency_key: "" })).status).toBe(400);
	for (const key of ["k2", undefined, undefined])
		await post({ text: "hello", ...(key !== undefined && { idempotency_key: key }) });
	expect(await rows()).toHaveLength(4);
});

it("P6.5: what broke off between the text and its delivery is delivered when it is sent again", async () => {
	const { post, rows, store } = await place();
	let fails = 1;
	refuseWrites(store, ({ table, op }) => table === "deliveries" && op === "open" && fails-- > 0);
	const wanted = { text: "hello", idempotency_key: "k" };
	expect((await post(wanted)).status).not.toBe(202);
	expect(await rows()).toEqual([]);
	const { body } = await post(wanted);
	expect(await rows()).toEqual([body.delivery_id]);
	expect((await post(wanted)).body).toEqual(body);
});
