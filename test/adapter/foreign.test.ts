/** An answer that is not the platform's own says nothing about what the platform did: no message is said twice for it, and none is called complete. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Platform } from "../../packages/adapter/src/platform/platform.ts";
import type { SendStatus, StreamStatus } from "../../packages/adapter/src/port.ts";
import { createAdapterContext } from "../../packages/adapter/src/serve/context.ts";
import { createSends } from "../../packages/adapter/src/serve/send.ts";
import { serveFake } from "../../packages/lab/src/http.ts";
import { type Place, STARTS } from "../../packages/lab/src/lab-places.ts";
import { CHANNELS, type Channel } from "../../packages/platforms/src/channels.ts";
import { type Clock, systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { loadPlatform } from "./platform.ts";
import { faultOf, memory, openAccount, openSession, sendOptions } from "./session.ts";

/** Answers that gateways, proxies and captive portals give in a platform's place. */
const ANSWERS: [string, { status: number; body?: string | object }][] = [
	["502 with a gateway's JSON", { status: 502, body: { message: "upstream" } }],
	["500 with a gateway's JSON", { status: 500, body: { error: "internal", code: "E1" } }],
	["503 with text", { status: 503, body: "upstream connect error or disconnect/reset before headers" }],
	["504 without a body", { status: 504 }],
	["403 with a firewall's JSON", { status: 403, body: { message: "Forbidden" } }],
	["404 with HTML", { status: 404, body: "<html>Not Found</html>" }],
	["400 with a list", { status: 400, body: ["bad"] }],
	["413 without a body", { status: 413 }],
	["200 with {}", { status: 200, body: {} }],
	["200 with a portal's HTML", { status: 200, body: "<html>Please sign in</html>" }],
	["200 without a body", { status: 200 }],
	["200 with null", { status: 200, body: "null" }],
];

const CREATES: Record<Channel, string | RegExp> = {
	telegram: "sendMessage",
	discord: /^POST .*messages/,
	slack: "chat.postMessage",
	whatsapp: "messages",
	imessage: "message/text",
	signal: "send",
	sms: /create|Messages/,
	gmail: "messages.send",
	nostr: "EVENT reply",
};

/** Waits of a session take no time of ours, and pass on its own clock. */
function leaping(): Clock {
	let ahead = 0;
	return {
		now: () => Date.now() + ahead,
		after(ms, callback) {
			ahead += ms;
			return systemClock.after(0, callback);
		},
	};
}

describe.each(CHANNELS)("%s", (channel) => {
	let place: Place;
	let platform: Platform;

	beforeEach(async () => {
		place = await STARTS[channel]!();
		platform = await loadPlatform(channel);
	});
	afterEach(() => place.fake.close());

	const open = () => openSession(platform, place.settings, { clock: leaping(), state: memory() });
	const shown = (text: string) => place.bubbles().filter((bubble) => bubble.text.includes(text)).length;

	test.each(ANSWERS)("an accepted creation behind %s is an unknown outcome", async (name, answer) => {
		const session = await open();
		const text = `said behind ${name.replace(/\W+/g, " ").trim()}`;
		place.fake.fault({ kind: "foreign", count: 1, call: CREATES[channel], answer });
		const error = await faultOf(session.create(place.target, text, sendOptions()));
		place.fake.fault(undefined);
		expect(error.fault).toBe("unknown_outcome");
		expect(error.message).not.toMatch(/undefined|\[object/);
		expect(shown(text)).toBe(1);
		await session.close?.();
	});

	test.each(ANSWERS.filter(([name]) => /^(?:502|403|200)/.test(name)))(
		"health behind %s is not fine, and says so in words",
		async (_name, { status, body }) => {
			const headers: Record<string, string> = typeof body === "string" ? { "content-type": "text/html" } : {};
			const handle = () => ({ status, headers, body });
			const gateway = await serveFake({ name: () => undefined, handle, refuse: handle });
			const addresses = { api_url: gateway.url, token_url: gateway.url, relays: gateway.url.replace(/^http/, "ws") };
			const settings = { ...place.settings, ...addresses };
			const session = await openSession(platform, settings, { clock: leaping(), state: memory() });
			const { ok, detail } = await session.health().catch((cause: unknown) => ({ ok: false, detail: String(cause) }));
			await gateway.close();
			expect(detail).not.toMatch(/undefined|\[object/);
			expect(ok).toBe(false);
			await session.close?.();
		},
	);

	if (["discord", "slack"].includes(channel))
		test.each([
			["502", { status: 502, body: "<html>bad gateway</html>" }, 0],
			[
				"503 that says how long",
				{ status: 503, body: { message: "no upstream" }, headers: { "retry-after": "7" } },
				7000,
			],
		])("I7: a creation that a gateway did not pass on (%s) is looked up, and made", async (_name, answer, waitsMs) => {
			const { session, sent } = await openAccount(platform, place.settings, { clock: leaping(), state: memory() });
			session.pace = () => ({ targetIntervalMs: 0 });
			const said: (StreamStatus | SendStatus)[] = [];
			const waits: number[] = [];
			const clock: Clock = {
				now: () => Date.now(),
				after(ms, callback) {
					waits.push(ms);
					return systemClock.after(ms === 30_000 ? ms : 0, callback);
				},
			};
			const context = createAdapterContext({
				platform,
				session,
				sent,
				account: "a",
				clock,
				random: () => 0.5,
				log: silentLog,
				say: (status) => void said.push(status),
				ready: async () => {},
			});
			const sends = createSends(context);
			place.fake.fault({ kind: "gateway", count: 1, call: CREATES[channel], answer });
			sends.accept({
				type: "send",
				delivery: "d",
				nonce: "n",
				target: place.target,
				text: "passed on",
				from: 0,
				to: 9,
			});
			await sends.stop();
			place.fake.fault(undefined);
			expect(said.map(({ type }) => type)).toContain("message_sent");
			expect(shown("passed on")).toBe(1);
			expect(waits.some((ms) => ms !== 30_000 && ms >= waitsMs)).toBe(true);
			await session.close?.();
		});

	if (["telegram", "discord", "slack"].includes(channel))
		test("I7: nothing happened behind a refused connection: it may be tried again", async () => {
			const gone = await serveFake({
				name: () => undefined,
				handle: () => ({ status: 500 }),
				refuse: () => ({ status: 500 }),
			});
			await gone.close();
			const settings = { ...place.settings, api_url: gone.url };
			const session = await openSession(platform, settings, { clock: leaping(), state: memory() });
			const error = await faultOf(session.create(place.target, "refused", sendOptions()));
			expect(error.fault).toBe("unavailable");
			await session.close?.();
		});

	test("I7: a send behind a gateway's 502 shows its text once, and is reported as sent or as unknown", async () => {
		const { session, sent } = await openAccount(platform, place.settings, { clock: leaping(), state: memory() });
		session.pace = () => ({ targetIntervalMs: 0 });
		const said: (StreamStatus | SendStatus)[] = [];
		const context = createAdapterContext({
			platform,
			session,
			sent,
			account: "a",
			clock: systemClock,
			random: () => 0.5,
			log: silentLog,
			say: (status) => void said.push(status),
			ready: async () => {},
			limits: { doubtWaitMs: 1 },
		});
		const sends = createSends(context);
		place.fake.fault({ kind: "foreign", count: 1, call: CREATES[channel] });
		sends.accept({ type: "send", delivery: "d", nonce: "n", target: place.target, text: "once only", from: 0, to: 9 });
		await sends.stop();
		place.fake.fault(undefined);
		expect(shown("once only")).toBe(1);
		const outcome = said.filter(({ type }) => type === "message_sent" || type === "delivery_error");
		expect(outcome).toHaveLength(1);
		if (outcome[0]?.type === "delivery_error") expect(outcome[0].code).toBe("unknown_outcome");
		await session.close?.();
	});
});
