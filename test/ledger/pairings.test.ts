import { describe, expect, test } from "vitest";
import { type Pairing, pairingWrites } from "../../packages/daemon/src/ledger/pairings/port.ts";
import { stores } from "./rig.ts";

const { save, remove, expire } = pairingWrites;

const pairingOf = (sender: string, fields: Partial<Pairing> = {}): Pairing => ({
	channel: "telegram",
	account: "bot",
	sender,
	code: `CODE${sender}`,
	state: "pending",
	target: { to: sender },
	createdAt: 1,
	expiresAt: 10,
	sentAt: 1,
	...fields,
});

describe.each(stores)("pairings %s", (_name, open) => {
	test("a pairing comes back as it was saved, by person and by code", async () => {
		const { ledger, write } = await open();
		const full = pairingOf("7", { senderName: "Ann", state: "approved", approvedAt: 5 });
		await write(save(full));
		expect(await ledger.pairings.get(full)).toEqual(full);
		expect(await ledger.pairings.byCode("CODE7")).toEqual(full);
		expect(await ledger.pairings.get({ ...full, account: "other" })).toBeUndefined();
	});

	test("there is one per person, and a code belongs to one person", async () => {
		const { ledger, write } = await open();
		await write(save(pairingOf("7")));
		await write(save(pairingOf("7", { code: "NEW" })));
		expect(await ledger.pairings.list()).toEqual([pairingOf("7", { code: "NEW" })]);
		await expect(write(save(pairingOf("8", { code: "NEW" })))).rejects.toThrow(
			expect.objectContaining({ refusal: "conflict" }),
		);
	});

	test("pending ones are counted per account and expire; approved ones stay", async () => {
		const { ledger, write } = await open();
		await write(save(pairingOf("1")));
		await write(save(pairingOf("2", { createdAt: 2, expiresAt: 20 })));
		await write(save(pairingOf("3", { createdAt: 3, state: "approved" })));
		expect(await ledger.pairings.pending("telegram", "bot")).toBe(2);
		expect(await ledger.pairings.pending("telegram", "other")).toBe(0);
		await write(expire(10));
		expect((await ledger.pairings.list()).map(({ sender }) => sender)).toEqual(["3", "2"]);
	});

	test("one that is not there cannot be removed", async () => {
		const { ledger, write } = await open();
		await write(save(pairingOf("3")), remove(pairingOf("3")));
		expect(await ledger.pairings.list()).toEqual([]);
		await expect(write(remove(pairingOf("3")))).rejects.toThrow(
			expect.objectContaining({ refusal: "conflict", message: "There is no pairing of telegram/bot/3." }),
		);
	});
});
