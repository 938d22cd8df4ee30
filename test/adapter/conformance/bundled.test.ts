/** Every bundled adapter keeps the protocol's promises, as a real process before its fake platform. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runConformance } from "../../../src/adapter/adapter.ts";
import { timedAdapter } from "../../children.ts";
import { CHANNELS, startPlatforms } from "../../proof/fake-platforms.ts";
import { fastTime } from "../../time/time.ts";

const TIME = fastTime(10);
/** Only what hangs takes this long. */
const LIMIT_MS = 60_000;
/** These send finished messages only. */
const WITHOUT_STREAM: readonly string[] = ["whatsapp", "sms", "imessage", "gmail"];
/** What these show early is no message. */
const COMPLETE_ONLY: readonly string[] = ["nostr"];

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
			const options = { account: "a", env, target: platform.target(1), limitMs: LIMIT_MS };
			const report = await runConformance(timedAdapter(channel), options);
			expect(report.cases.filter(({ result }) => result === "failed")).toEqual([]);
			expect(report.passed).toBe(true);
			const skipped = report.cases.filter(({ result }) => result === "skipped");
			const reasons = COMPLETE_ONLY.includes(channel)
				? /only when they are complete/
				: /does not declare "stream"|more than this suite sends/;
			for (const { detail } of skipped) expect(detail).toMatch(reasons);
			expect(skipped.length > 0).toBe([...WITHOUT_STREAM, ...COMPLETE_ONLY].includes(channel));
		} finally {
			await platform.fake.close();
			rmSync(folder, { recursive: true, force: true });
		}
	});
});
