/** I7: a message that a platform took and did not deliver is visible on its delivery, whenever the platform says so. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWhatsAppFake, type WhatsAppFake } from "../../../packages/lab/src/whatsapp.ts";
import { ADAPTER } from "../../children.ts";
import { beginRun, createRigWith, onlyMessages, type Rig, until } from "./rig.ts";

const ANN = { to: "15550001", direct: true };
const place = { account: { channel: "whatsapp", id: "main" }, target: ANN };
const LATE = [{ code: 131047, title: "Re-engagement message" }];

let fake: WhatsAppFake;
let rig: Rig;
let warned: object[];

beforeEach(async () => {
	fake = await createWhatsAppFake();
	warned = [];
	const log = { debug() {}, info() {}, warn() {}, error: (facts: object) => void warned.push(facts) };
	rig = createRigWith(
		() => ({
			whatsapp: {
				command: [process.execPath, "--conditions=nexus-source", ADAPTER, "whatsapp"],
				accounts: { main: { settings: fake.settings } },
				blocks: { minChars: 1, maxChars: 20, idleMs: 10, humanDelayMs: null },
			},
		}),
		{ log },
	);
	rig.outbound.monitor("whatsapp", "main", onlyMessages());
});
afterEach(async () => {
	await rig.close();
	await fake.close();
});

/** The call of WhatsApp's server when a message was not delivered. */
async function report(nth: number, status = "failed"): Promise<void> {
	const message = fake.raw(ANN.to)[nth]!;
	const { headers, body } = fake.signed(fake.status(message, status, status === "failed" ? LATE : undefined));
	const request = { method: "POST", query: "", headers, body: body.toString("base64") };
	expect(await rig.outbound.webhook("whatsapp", "main", request)).toMatchObject({ status: 200 });
}

describe("a message that the platform took and did not deliver", { timeout: 300_000 }, () => {
	it("turns a complete delivery into a failed one, with the platform's reason, and warns once", async () => {
		const { id } = await rig.outbound.deliver({ ...place, text: "too late" });
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		await report(0, "delivered");
		expect(rig.deliveries.get(id)).toMatchObject({ state: "complete" });
		await report(0);
		await report(0);
		expect(rig.deliveries.get(id)).toMatchObject({
			state: "failed",
			error: expect.stringContaining("24 hours"),
			messages: [{ state: "failed", messageId: fake.raw(ANN.to)[0]!.id, error: expect.stringContaining("24 hours") }],
		});
		expect(warned).toEqual([expect.objectContaining({ delivery: id, channel: "whatsapp", account: "main" })]);
		expect(fake.visible(ANN.to)).toEqual(["too late"]);
	});

	it("reported while the answer is still being written: the rest is sent, and the delivery ends as failed", async () => {
		const run = await beginRun(rig.bus);
		const { id } = await rig.outbound.deliver({ ...place, runId: run.runId });
		run.text("First paragraph.\n\n");
		await until(() => rig.deliveries.get(id)!.messages[0]?.state === "sent", "the first is out");
		await report(0);
		run.text("Second paragraph.");
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({
			state: "failed",
			error: expect.stringContaining("24 hours"),
			messages: [{ state: "failed" }, { state: "sent" }],
		});
		expect(fake.visible(ANN.to)).toHaveLength(2);
	});
});
