/** An application fills its share of the disk of a whole daemon: it is refused, the owner sees it, clears it, and it goes on. */

import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";

import { RuntimeAiService, ScenarioJobState as State } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";

import { asking } from "../ai-client.ts";
import { errorOf, statusOf } from "../edge/grpc/kit.ts";
import { TOKEN } from "../edge/rig.ts";
import { until } from "../until.ts";
import { freshFolder } from "./folder.ts";

/** As the HTTP API spells 64-bit numbers. */
interface Listed {
	stored_bytes: string;
	stored: Record<string, string>;
}

test("I11: finished jobs count against the quota of their application, until the owner clears them", async () => {
	const bytesPerAppMax = 400_000;
	const daemon = await startDaemon({
		data: freshFolder(),
		port: 0,
		token: TOKEN,
		engine: "demo",
		logger: silentLog,
		apps: { bytesPerAppMax },
	});
	onTestFinished(() => daemon.close());
	const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
		const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
		const answer = await fetch(`${daemon.url}${path}`, { method, headers, body: body && JSON.stringify(body) });
		return (await answer.json()) as T;
	};
	const clientFor = async (app_id: string) => {
		const { token } = await call<{ token: string }>("POST", "/v1/apps", { app_id });
		const transport = createGrpcTransport({
			baseUrl: daemon.grpc!,
			interceptors: [
				(next) => (request) => {
					request.header.set("authorization", `Bearer ${token}`);
					return next(request);
				},
			],
		});
		return createClient(RuntimeAiService, transport);
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
	const { apps } = await call<{ apps: Listed[] }>("GET", "/v1/apps");
	const [listed, other] = [apps[0]!, apps[1]!];
	expect(listed).toMatchObject({ app_id: "shop", stored_bytes_max: String(bytesPerAppMax) });
	expect(Number(listed.stored.jobs)).toBeGreaterThan(300_000);
	expect(Number(listed.stored.logs)).toBeGreaterThan(0);
	expect(Number(listed.stored_bytes)).toBe(Object.values(listed.stored).reduce((sum, bytes) => sum + Number(bytes), 0));
	expect(Number(other.stored_bytes)).toBeLessThan(200_000);
	const cleared = await call<object>("POST", "/v1/apps/shop/clear", {});
	expect(cleared).toEqual({ app_id: "shop", stored_bytes: "0", stored_bytes_max: String(bytesPerAppMax) });
	await job(shop, "shop");
});
