/** Every bundled adapter keeps the protocol's promises, as a real process before its fake platform. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runConformance } from "../../../packages/adapter/src/host.ts";
import type { Fake } from "../../../packages/lab/src/fake.ts";
import { BOT } from "../../../packages/lab/src/slack/store.ts";
import { timedAdapter } from "../../children.ts";
import { CHANNELS, startPlatforms } from "../../proof/fake-platforms.ts";
import { fastTime } from "../../time/time.ts";

const TIME = fastTime(10);
/** Only what hangs takes this long. */
const LIMIT_MS = 60_000;
/** These send finished messages only. */
const WITHOUT_STREAM: readonly string[] = ["whatsapp", "sms", "imessage", "gmail"];
/** These show text early, but send messages only when they are complete. */
const COMPLETE_ONLY: readonly string[] = ["nostr"];

/** These ask with buttons, the others in words. */
const WITH_BUTTONS: readonly string[] = ["telegram", "slack", "discord"];
const ASK_CASES = 5;

/** A person who finds the message by its id. */
function pressOn(fake: Fake, to: string) {
	return async (messageId: string, label: string) => {
		const ours = fake.raw(to).filter((each) => (each as { user?: string }).user === undefined || isBot(each));
		const nth = ours.findIndex((each) => idOf(each) === messageId);
		await fake.press?.(to, nth, label);
	};
}

const isBot = (message: unknown): boolean => (message as { user?: string }).user === BOT.user;

function idOf(message: unknown): string {
	const { id, ts, message_id } = message as { id?: string; ts?: string; message_id?: number };
	return id ?? ts ?? String(message_id);
}

// Part of each case is waiting, so they wait together.
describe.concurrent("conformance: bundled adapters", { timeout: 400_000 }, () => {
	it.each(CHANNELS)("I7: %s passes every case that it declares", async (channel) => {
		const folder = mkdtempSync(join(tmpdir(), `nexus-conformance-${channel}-`));
		const [platform] = await startPlatforms([channel], TIME);
		if (!platform) throw new Error(`no fake of ${channel}`);
		try {
			const account = join(folder, "account.json");
			writeFileSync(account, JSON.stringify({ id: "a", settings: platform.settings }));
			const env = { ...TIME.env, NEXUS_ACCOUNT_FILE: account, NEXUS_STATE_FILE: join(folder, "state.json") };
			const target = platform.target(1);
			const press = platform.fake.press && pressOn(platform.fake, target.to);
			const options = { account: "a", env, target, limitMs: LIMIT_MS, press };
			const report = await runConformance(timedAdapter(channel), options);
			expect(report.cases.filter(({ result }) => result === "failed")).toEqual([]);
			expect(report.passed).toBe(true);
			const skipped = report.cases.filter(({ result }) => result === "skipped");
			const reasons = COMPLETE_ONLY.includes(channel)
				? /only when they are complete/
				: /does not declare "stream"|more than this suite sends/;
			const asks = skipped.filter(({ detail }) => detail === 'it does not declare "ask"');
			expect(asks.length).toBe(WITH_BUTTONS.includes(channel) ? 0 : ASK_CASES);
			const others = skipped.filter((each) => !asks.includes(each));
			for (const { detail } of others) expect(detail).toMatch(reasons);
			expect(others.length > 0).toBe([...WITHOUT_STREAM, ...COMPLETE_ONLY].includes(channel));
		} finally {
			await platform.fake.close();
			rmSync(folder, { recursive: true, force: true });
		}
	});
});
