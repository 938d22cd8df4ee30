import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createWhatsAppFake, type WhatsAppFake } from "../../../packages/lab/src/whatsapp.ts";
import { REAL_TIME, type TestTime } from "../../time/time.ts";
import { until } from "../../until.ts";
import { deliverBlocks } from "../blocks.ts";
import { type AdapterProcess, startAdapter, TIME } from "../process.ts";

const ANN = { to: "15550001", reply_to: "wamid.IN1", direct: true };

async function withFake(work: (fake: WhatsAppFake) => Promise<void>, { clock } = TIME): Promise<void> {
	const fake = await createWhatsAppFake({ clock });
	try {
		await work(fake);
	} finally {
		await fake.close();
	}
}

const line = (index: number, text: string) => ({
	type: "send",
	delivery: "d",
	nonce: `n${index}`,
	target: ANN,
	text,
	from: index * 100,
	to: index * 100 + text.length,
});

/** The fake's webhooks go through the monitor, as the daemon hands them on. */
function listenFor(fake: WhatsAppFake, folder: string, time: TestTime): AdapterProcess {
	const waiting = new Map<string, (status: number) => void>();
	const monitor = startAdapter(
		"whatsapp",
		"monitor",
		fake.settings,
		(said) => {
			if (said.type === "message") monitor.write({ type: "ack", eventId: said.eventId });
			if (said.type === "webhook_response") waiting.get(String(said.id))?.(Number(said.status));
		},
		folder,
		time,
	);
	let count = 0;
	fake.subscribe(({ method, headers, body }) => {
		const id = `w${++count}`;
		monitor.write({ type: "webhook", id, method, query: "", headers, body: body.toString("base64") });
		return new Promise((resolve) => waiting.set(id, resolve));
	});
	return monitor;
}

describe.concurrent("the adapter as a process", () => {
	test("I7: a send without an answer is found by its status, which another process hears", () =>
		withFake(async (fake) => {
			const folder = mkdtempSync(join(tmpdir(), "nexus-whatsapp-"));
			const monitor = listenFor(fake, folder, REAL_TIME);
			await monitor.reads();
			fake.fault({ kind: "reset_after_accept", count: 1, call: "messages" });
			const sender = startAdapter("whatsapp", "send", fake.settings, () => {}, folder, REAL_TIME);
			sender.write(line(0, "once"));
			sender.write(line(1, "more"));
			await until("2 messages are sent", () => sender.lines.filter(({ type }) => type === "message_sent").length === 2);
			await fake.inject({ text: "thanks" });
			expect(monitor.lines).toContainEqual(expect.objectContaining({ type: "message", text: "thanks" }));
			await Promise.all([sender.end(), monitor.end()]);
			rmSync(folder, { recursive: true, force: true });
			expect(fake.visible(ANN.to)).toEqual(["once", "more"]);
			expect(sender.lines.filter(({ type }) => type === "delivery_error")).toEqual([]);
			// In real time: what it waits for is another process.
		}, REAL_TIME));

	test("I7: killed when the platform has taken a block, it is not said twice; an unknown outcome is flagged", () =>
		withFake(async (fake) => {
			const blocks = ["block one", "block two"];
			fake.fault({ kind: "slow", count: 1, ms: 3000 });
			const result = await deliverBlocks({
				channel: "whatsapp",
				settings: fake.settings,
				target: ANN,
				blocks,
				dies: async (status, deaths) => {
					if (deaths > 0 || status.type !== "written") return false;
					await until("the platform has the message", () => fake.raw(ANN.to).length > 0);
					return true;
				},
			});
			expect(result.deaths).toBe(1);
			expect(fake.visible(ANN.to)).toEqual(blocks);
			expect(result.unknown).toEqual(["block one"]);
		}));

	test("typing, an attachment, a long text in several messages, health", () =>
		withFake(async (fake) => {
			const sender = startAdapter("whatsapp", "send", fake.settings);
			sender.write({ type: "typing", target: ANN, on: true });
			await until("the call is made", () => fake.calls.length === 1);
			const attachments = [{ name: "a.txt", contentType: "text/plain", data: "aGk=" }];
			const long = Array.from({ length: 900 }, (_, index) => `word${index}`).join(" ");
			sender.write({ ...line(0, long), to: long.length, attachments });
			await until("the last message is sent", () => sender.lines.some(({ final }) => final === true));
			expect(await sender.end()).toBe(0);
			const seen = fake.visible(ANN.to);
			expect(seen.at(-1)).toBe("[a.txt]");
			expect(seen.slice(0, -1).join(" ")).toBe(long);
			expect(seen.length).toBe(3);
			expect(fake.calls[0]?.name).toBe("typing");
			const health = startAdapter("whatsapp", "health", fake.settings);
			expect(await health.end()).toBe(0);
			expect(health.lines).toMatchObject([{ ok: true }]);
		}));
});
