/** Names from outside that every JavaScript object knows are not accounts. */

import { expect, it, onTestFinished } from "vitest";
import { queueOf, rulesOf } from "../../../packages/daemon/src/nex/inbox/config.ts";
import { createRig } from "./rig.ts";

const NAMES = ["__proto__", "constructor", "toString", "hasOwnProperty"];

it("a channel or account called like a part of every object is not there", async () => {
	const rig = createRig("full");
	onTestFinished(() => rig.close());
	const { outbound } = rig;
	const request = { method: "POST", query: "", headers: {}, body: "" };
	for (const name of NAMES) {
		for (const [channel, account] of [
			[name, "main"],
			["full", name],
			[name, name],
		] as const) {
			const missing = { code: "not_found" };
			await expect(outbound.webhook(channel, account, request)).rejects.toMatchObject(missing);
			await expect(outbound.health(channel, account)).rejects.toMatchObject(missing);
			const deliver = { account: { channel, id: account }, target: { to: "1" }, text: "hi" };
			await expect(outbound.deliver(deliver)).rejects.toMatchObject(missing);
		}
	}
});

it("nor are they sessions or channels with rules of their own", () => {
	const config = { channels: { full: { accounts: { main: {} } } }, sessions: {} };
	for (const name of NAMES) {
		expect(rulesOf(config, name, name)).toEqual(rulesOf(config, "other", "other"));
		const queue = (of: string) => queueOf(config, { channel: of, account: of, session: of }, 9);
		expect(queue(name)).toEqual(queue("other"));
	}
});
