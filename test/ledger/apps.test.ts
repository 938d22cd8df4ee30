import { describe, expect, test } from "vitest";
import { appWrites, receiptWrites } from "../../packages/daemon/src/services/apps/rows.ts";
import { signInWrites } from "../../packages/daemon/src/services/signins/rows.ts";
import { stores } from "./rig.ts";

const appOf = (id: string, createdAt = 1) => ({
	id,
	name: `the ${id}`,
	tokenHash: `hash of ${id} ${createdAt}`,
	createdAt,
});
const LIMITS = { appsMax: 2 };
const conflict = (message: string) => expect.objectContaining({ refusal: "conflict", message });

describe.each(stores)("apps %s", (_name, open) => {
	test("an application comes back as it was added, and is there once", async () => {
		const { ledger, write } = await open();
		await write(appWrites.add(appOf("shop"), LIMITS));
		expect(await ledger.apps.list()).toEqual([appOf("shop")]);
		await expect(write(appWrites.add(appOf("shop", 2), LIMITS))).rejects.toThrow(
			conflict("There is an application shop already."),
		);
	});

	test("Z25: a removed one stays on the list, and can be added again with another token", async () => {
		const { ledger, write } = await open();
		await write(appWrites.add(appOf("shop"), LIMITS));
		await write(appWrites.revoke("shop", 5));
		expect(await ledger.apps.list()).toEqual([{ ...appOf("shop"), revokedAt: 5 }]);
		await expect(write(appWrites.revoke("shop", 6))).rejects.toThrow(conflict("There is no application shop."));
		await write(appWrites.add(appOf("shop", 7), LIMITS));
		expect(await ledger.apps.list()).toEqual([appOf("shop", 7)]);
	});

	test("I11: those with a good token are limited", async () => {
		const { write } = await open();
		await write(appWrites.add(appOf("one"), LIMITS), appWrites.add(appOf("two"), LIMITS));
		await expect(write(appWrites.add(appOf("three"), LIMITS))).rejects.toThrow(/2 applications already/);
		await write(appWrites.revoke("one", 5));
		await write(appWrites.add(appOf("three"), LIMITS));
	});
});

describe.each(stores)("sign-ins %s", (_name, open) => {
	const signInOf = (id: string, createdAt: number, expiresAt: number) => ({
		id,
		address: "192.0.2.1",
		createdAt,
		expiresAt,
	});

	test("Z24: a sign-in is on record until a while after its end, by time or by sign-out", async () => {
		const { ledger, write } = await open();
		await write(signInWrites.add(signInOf("a", 1, 100)), signInWrites.add(signInOf("b", 2, 10)));
		await write(signInWrites.add(signInOf("c", 3, 100)), signInWrites.revoke("c", 5));
		expect(await ledger.signins.list()).toEqual([
			signInOf("a", 1, 100),
			signInOf("b", 2, 10),
			{ ...signInOf("c", 3, 100), revokedAt: 5 },
		]);
		await expect(write(signInWrites.revoke("c", 6))).rejects.toThrow(conflict("There is no sign-in c."));
		await write(signInWrites.forget(6));
		expect((await ledger.signins.list()).map(({ id }) => id)).toEqual(["a", "b"]);
		await write(signInWrites.forget(11));
		expect((await ledger.signins.list()).map(({ id }) => id)).toEqual(["a"]);
	});
});

describe.each(stores)("receipts %s", (_name, open) => {
	const receipt = { messageId: "msg_1", from: "a", to: "b", messageType: "t", sentAt: 5 };

	test("Z22: a receipt is settled once, and forgotten by age", async () => {
		const { ledger, write } = await open();
		await write(receiptWrites.add({ ...receipt, subjectUserId: "u" }));
		expect(await ledger.receipts.get("msg_1")).toEqual({ ...receipt, subjectUserId: "u" });
		expect(await ledger.receipts.get("msg_2")).toBeUndefined();
		await write(receiptWrites.settle("msg_1", 9));
		expect(await ledger.receipts.get("msg_1")).toMatchObject({ settledAt: 9 });
		await expect(write(receiptWrites.settle("msg_1", 10))).rejects.toThrow(
			conflict("No sender waits for a receipt of msg_1."),
		);
		await write(receiptWrites.forget(5));
		expect(await ledger.receipts.get("msg_1")).toBeDefined();
		await write(receiptWrites.forget(6));
		expect(await ledger.receipts.get("msg_1")).toBeUndefined();
	});
});
