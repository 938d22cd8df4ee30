/** One idempotency key for two messages. */

import { expect, it, onTestFinished } from "vitest";
import { echo, nexRig } from "./rig.ts";

const open = async (options: Parameters<typeof nexRig>[1] = {}) => {
	const rig = nexRig(echo, options);
	onTestFinished(async () => {
		await rig.nex.stop(0);
		await rig.broker.drain(0);
	});
	await rig.nex.load();
	return rig;
};

it("P6.3: the same key with the same content is the same message, with another one a conflict that names it", async () => {
	const { nex } = await open();
	const first = { session: "s", text: "one", idempotencyKey: "k" };
	const { eventId } = await nex.receive(first);
	expect(await nex.receive(first)).toMatchObject({ eventId });
	const conflict = { code: "conflict", message: expect.stringContaining(eventId) };
	await expect(nex.receive({ ...first, text: "two" })).rejects.toMatchObject(conflict);
	const file = { name: "a.txt", contentType: "text/plain", data: "YQ==" };
	await expect(nex.receive({ ...first, attachments: [file] })).rejects.toMatchObject(conflict);
	expect((await nex.receive({ ...first, session: "other", text: "two" })).eventId).not.toBe(eventId);
});

it("P6.3: also while the first one is still on its way, and when a plugin has changed its text", async () => {
	const gate = Promise.withResolvers<void>();
	const plugin = {
		name: "slow",
		async onReceive() {
			await gate.promise;
			return { text: `changed at ${performance.now()}` };
		},
	};
	const { nex } = await open({ plugins: [plugin] });
	const first = nex.receive({ session: "s", text: "one", idempotencyKey: "k" });
	const other = nex.receive({ session: "s", text: "two", idempotencyKey: "k" });
	const same = nex.receive({ session: "s", text: "one", idempotencyKey: "k" });
	const refused = expect(other).rejects.toMatchObject({ code: "conflict" });
	gate.resolve();
	const { eventId } = await first;
	await refused;
	expect((await same).eventId).toBe(eventId);
	expect((await nex.receive({ session: "s", text: "one", idempotencyKey: "k" })).eventId).toBe(eventId);
});
