/** An application fills its share of a daemon's disk: it is refused, the owner sees it and clears it, and it works again. */

import { expect, test } from "vitest";
import { ScenarioJobState as State } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";

import { asking, clientOf } from "../ai-client.ts";
import { errorOf, statusOf } from "../edge/grpc/kit.ts";
import { until } from "../until.ts";
import { callJson, daemonForTest } from "./daemon.ts";

/** As the HTTP API spells 64-bit numbers. */
interface Listed {
	stored_bytes: string;
	stored: Record<string, string>;
}

test("I11: finished jobs count against the quota of their application, until the owner clears them", async () => {
	const bytesPerAppMax = 400_000;
	const daemon = await daemonForTest({ apps: { bytesPerAppMax } });
	const clientFor = async (app_id: string) => {
		const { token } = await callJson<{ token: string }>(daemon, "/v1/apps", { app_id });
		return clientOf(daemon, token);
	};
	const [shop, press] = [await clientFor("shop"), await clientFor("press")];
	const job = async (ai: typeof shop, appId: string) => {
		const scenario = asking(`/demo tokens=1 rate=0 ${"x".repeat(100_000)}`);
		const { job: made } = await ai.submitScenarioJob({ scenario: { ...scenario, head: { ...scenario.head, appId } } });
		const jobId = made!.jobId;
		await until("it has ended", async () => (await ai.getScenarioJob({ jobId })).job!.state === State.COMPLETED);
	};
	for (let n = 0; n < 3; n++) await job(shop, "shop");
	const refused = await errorOf(job(shop, "shop"));
	expect(statusOf(refused)).toEqual({ code: "ResourceExhausted", reason: "REASON_CODE_QUOTA_EXCEEDED" });
	expect(String(refused)).toMatch(/nexus app clear shop.*apps\.bytesPerAppMax/);
	await job(press, "press");
	const { apps } = await callJson<{ apps: Listed[] }>(daemon, "/v1/apps");
	const [listed, other] = [apps[0]!, apps[1]!];
	expect(listed).toMatchObject({ app_id: "shop", stored_bytes_max: String(bytesPerAppMax) });
	expect(Number(listed.stored.jobs)).toBeGreaterThan(300_000);
	expect(Number(listed.stored.logs)).toBeGreaterThan(0);
	expect(Number(listed.stored_bytes)).toBe(Object.values(listed.stored).reduce((sum, bytes) => sum + Number(bytes), 0));
	expect(Number(other.stored_bytes)).toBeLessThan(200_000);
	const cleared = await callJson<object>(daemon, "/v1/apps/shop/clear", {});
	expect(cleared).toEqual({ app_id: "shop", stored_bytes: "0", stored_bytes_max: String(bytesPerAppMax) });
	await job(shop, "shop");
});
