import { describe, expect, test } from "vitest";
import { connectorWrites, type StoredConnector } from "../../packages/daemon/src/services/connectors/rows.ts";
import { stores } from "./rig.ts";

const { add, replace, remove } = connectorWrites;
const MAX = 10;

const plain = (id: string, fields: Partial<StoredConnector> = {}): StoredConnector => ({
	id,
	providerType: "openai",
	enabled: true,
	models: [],
	kinds: ["text"],
	createdAt: 1,
	updatedAt: 1,
	revision: 1,
	...fields,
});

describe.each(stores)("connectors %s", (_name, openStore) => {
	test("one comes back as it was added, with and without what may be left out", async () => {
		const { ledger, write } = await openStore();
		const full = plain("b", {
			appId: "shop",
			endpoint: "https://models.example/v1",
			sealedKey: "v1.a.b.c",
			keyHint: "…abcd",
			defaultModel: "m1",
			models: ["m1", "m2"],
			kinds: ["text", "speech"],
			enabled: false,
		});
		await write(add(full, MAX), add(plain("a"), MAX));
		expect(await ledger.connectors.get("b")).toEqual(full);
		expect(await ledger.connectors.list()).toEqual([plain("a"), full]);
		expect(await ledger.connectors.get("c")).toBeUndefined();
	});

	test("an id is taken once, and there is a limit to their number", async () => {
		const { ledger, write } = await openStore();
		await write(add(plain("a"), 2), add(plain("b"), 2));
		await expect(write(add(plain("a", { appId: "other" }), MAX))).rejects.toThrow(
			expect.objectContaining({ refusal: "duplicate" }),
		);
		await expect(write(add(plain("c"), 2))).rejects.toThrow("remove one first");
		expect((await ledger.connectors.list()).map(({ id }) => id)).toEqual(["a", "b"]);
	});

	test("a change applies to the revision that it was made from, and to no other", async () => {
		const { ledger, write } = await openStore();
		await write(add(plain("a"), MAX), replace(plain("a", { revision: 2, enabled: false })));
		await expect(write(replace(plain("a", { revision: 2, endpoint: "https://late.example" })))).rejects.toThrow(
			"meanwhile",
		);
		await expect(write(replace(plain("b", { revision: 2 })))).rejects.toThrow("meanwhile");
		expect(await ledger.connectors.get("a")).toEqual(plain("a", { revision: 2, enabled: false }));
	});

	test("what is removed is gone; what is not there cannot be removed", async () => {
		const { ledger, write } = await openStore();
		await write(add(plain("a"), MAX), remove("a"));
		expect(await ledger.connectors.list()).toEqual([]);
		await expect(write(remove("a"))).rejects.toThrow("There is no connector a.");
	});
});
