/** Applications and their tokens. */

import { expect, onTestFinished, test } from "vitest";
import { createApplications } from "../../packages/daemon/src/services/apps/apps.ts";
import type { Audit, AuditEntry } from "../../packages/daemon/src/services/audit/port.ts";
import { createAudit } from "../../packages/daemon/src/services/audit/record.ts";
import { noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { manualClock } from "../clock.ts";
import { storeForTest } from "../store.ts";
import { appPrincipal, OWNER, rejectsWith } from "./parts.ts";

const APP = appPrincipal("shop");

async function applications(store = storeForTest(), more: { appsMax?: number; audit?: Audit } = {}) {
	const clock = manualClock(1000);
	const apps = createApplications({ ...store, clock, log: silentLog, audit: createAudit(clock), ...more });
	await apps.load();
	onTestFinished(() => apps.close());
	return { apps, store };
}

test("Z25: a token is shown once, proves its application, and only its hash is kept", async () => {
	const { apps, store } = await applications();
	const { app, token } = await apps.add({ id: "shop", name: "Web shop" }, OWNER);
	expect(app).toEqual({ id: "shop", name: "Web shop", createdAt: 1000 });
	expect(token).toMatch(/^nxa_[\w-]{43}$/);
	expect(apps.authenticate(token)).toMatchObject({ appId: "shop" });
	expect(apps.authenticate(`${token}x`)).toBeUndefined();
	expect(apps.authenticate(`nxa_${"A".repeat(43)}`)).toBeUndefined();
	expect(apps.authenticate("shop")).toBeUndefined();
	expect(JSON.stringify([apps.list(), store.stored.apps.list()])).not.toContain(token);
});

test("Z25: tokens outlive a restart, and each is its own application's", async () => {
	const { apps, store } = await applications();
	const tokens = await Promise.all(["a", "b"].map(async (id) => (await apps.add({ id }, OWNER)).token));
	const next = await applications(store);
	expect(tokens.map((token) => next.apps.authenticate(token)?.appId)).toEqual(["a", "b"]);
});

test("Z25: a removed application's token is worth nothing at once, in every daemon of the store; what it had open ends", async () => {
	const { apps, store } = await applications();
	const other = (await applications(store)).apps;
	const { token } = await apps.add({ id: "shop" }, OWNER);
	await expect.poll(() => other.authenticate(token)).toBeDefined();
	const [here, there] = [apps.authenticate(token)!, other.authenticate(token)!];
	await apps.remove("shop", OWNER);
	expect(apps.authenticate(token)).toBeUndefined();
	expect(here.ended.aborted).toBe(true);
	await expect.poll(() => there.ended.aborted).toBe(true);
	expect(other.authenticate(token)).toBeUndefined();
	expect(apps.has("shop")).toBe(false);
	await rejectsWith(apps.remove("shop", OWNER), "not_found");
	const again = await apps.add({ id: "shop" }, OWNER);
	expect(apps.authenticate(token)).toBeUndefined();
	expect(apps.authenticate(again.token)?.ended.aborted).toBe(false);
});

test.each(["", "owner", "-x", "a b", "a/b", "x".repeat(65)])("%j is not a valid application name", async (id) => {
	const { apps } = await applications();
	await rejectsWith(apps.add({ id }, OWNER), "invalid");
});

test("Z25: only the owner adds and removes; one name is one application; their number is limited", async () => {
	const { apps } = await applications(storeForTest(), { appsMax: 1 });
	await rejectsWith(apps.add({ id: "shop" }, APP), "forbidden");
	await apps.add({ id: "shop" }, OWNER);
	await rejectsWith(apps.remove("shop", APP), "forbidden");
	await rejectsWith(apps.add({ id: "shop" }, OWNER), "conflict");
	await rejectsWith(apps.add({ id: "other" }, OWNER), "conflict");
});

test("Z28: what is done to an application is audited in the same commit, without its token", async () => {
	const told: AuditEntry[] = [];
	const store = storeForTest();
	const audit = (entry: AuditEntry) => {
		told.push(entry);
		return noticeWrites.post("audit", JSON.stringify(entry), 1);
	};
	const { apps } = await applications(store, { audit });
	const { token } = await apps.add({ id: "shop" }, OWNER);
	await apps.remove("shop", OWNER);
	const entries = store.stored.notices
		.read("audit", 0, 10)!
		.text.split("\n")
		.map((text) => JSON.parse(text));
	expect(entries).toEqual([
		{ domain: "apps", operation: "added", appId: "shop", caller: "127.0.0.1" },
		{ domain: "apps", operation: "removed", appId: "shop", caller: "127.0.0.1" },
	]);
	expect(JSON.stringify(told)).not.toContain(token);
});
