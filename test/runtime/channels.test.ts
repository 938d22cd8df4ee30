/** The options of NEX, from the file and from stored accounts. */

import { chmodSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { agentOf, rulesOf } from "../../packages/daemon/src/nex/inbox/config.ts";
import { nexConfig } from "../../packages/daemon/src/runtime/config/channels.ts";
import { completeConfig } from "../../packages/daemon/src/runtime/config/config.ts";
import { readAccounts, removeAccount, storeAccount } from "../../packages/daemon/src/runtime/data/secrets.ts";
import { freshFolder } from "./folder.ts";

const SECRET = "s3cret-of-the-tests";

describe("stored accounts", () => {
	it("are for their owner only, also when an earlier file was not, and come back as they were", () => {
		const data = freshFolder();
		const account = { channel: "telegram", account: "a/b.c", settings: { token: SECRET } };
		chmodSync(storeAccount(data, account), 0o644);
		expect(statSync(storeAccount(data, account)).mode & 0o777).toBe(0o600);
		expect(statSync(join(data, "accounts")).mode & 0o777).toBe(0o700);
		expect(readdirSync(join(data, "accounts"))).toEqual(["telegram.a%2Fb%2Ec.json"]);
		expect(readAccounts(data)).toEqual([account]);
		expect(removeAccount(data, account)).toBe(true);
		expect(removeAccount(data, account)).toBe(false);
		expect(readAccounts(data)).toEqual([]);
	});

	it("that are damaged stop the start, without being repeated", () => {
		const data = freshFolder();
		writeFileSync(storeAccount(data, { channel: "x", account: "y", settings: {} }), `{"token":"${SECRET}"`);
		expect(() => readAccounts(data)).toThrow(/x\.y\.json is damaged: remove it/);
		try {
			readAccounts(data);
		} catch (cause) {
			expect(String(cause)).not.toContain(SECRET);
		}
	});
});

describe("nexConfig", () => {
	it("A25: the orchestrator answers where a channel names no agent, or the only agent, or main", () => {
		const agentFor = (agents?: Record<string, { orchestrator?: boolean }>) => {
			const { inbound } = nexConfig(completeConfig({ data: freshFolder(), ...(agents && { agents }) }));
			return [agentOf(inbound, "web", "web"), rulesOf(inbound, "telegram", "x").agent];
		};
		expect(agentFor({ writer: {}, lead: { orchestrator: true } })).toEqual(["lead", "lead"]);
		expect(agentFor({ only: {} })).toEqual(["only", "only"]);
		expect(agentFor()).toEqual(["main", "main"]);
	});

	it("joins the file's channels with stored accounts; the file's settings are stronger", () => {
		const data = freshFolder();
		storeAccount(data, { channel: "telegram", account: "main", settings: { token: SECRET, drafts: "false" } });
		storeAccount(data, { channel: "slack", account: "work", settings: { token: "x" } });
		const channels = {
			telegram: {
				command: ["./mine.py", "--fast"],
				acl: { owner: ["7"] },
				accounts: { main: { settings: { drafts: "true" }, agent: "support" }, other: {} },
				errorText: "",
			},
		};
		const { adapters, inbound } = nexConfig(completeConfig({ data, base: "/conf", channels, plugins: ["./p.ts"] }));
		expect(adapters).toEqual({
			telegram: {
				command: ["/conf/mine.py", "--fast"],
				accounts: { main: { settings: { token: SECRET, drafts: "true" } }, other: { settings: {} } },
				errorText: "",
			},
			slack: { accounts: { work: { settings: { token: "x" } } }, errorText: "Sorry, I encountered an error." },
		});
		expect(inbound).toMatchObject({ base: "/conf", plugins: ["./p.ts"] });
		expect(inbound.channels?.telegram).toMatchObject({ acl: { owner: ["7"] } });
		expect(inbound.channels?.telegram?.accounts?.main).toMatchObject({ agent: "support" });
		expect(Object.keys(inbound.channels?.slack?.accounts ?? {})).toEqual(["work"]);
	});

	it("is empty without channels", () => {
		expect(nexConfig(completeConfig({ data: freshFolder() })).adapters).toEqual({});
	});
});
