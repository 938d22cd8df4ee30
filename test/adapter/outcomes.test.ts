/** A failed creation means the same on every platform: it says whether the message exists, and how long to wait. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PlatformFault } from "../../packages/adapter/src/port.ts";
import type { FakeFault } from "../../packages/lab/src/fake.ts";
import { type Place, STARTS } from "../../packages/lab/src/lab-places.ts";
import { CHANNELS, type Channel } from "../../packages/platforms/src/channels.ts";
import { systemClock } from "../../packages/protocol/src/clock.ts";
import { loadPlatform } from "./platform.ts";
import { abortedWhen, faultOf, memory, type OpenSession, openSession, sendOptions } from "./session.ts";

interface Outcomes {
	/** The call that creates a message. */
	call: string;
	/** The meaning of a server's error: one of the platform itself says that nothing happened. */
	error: PlatformFault;
	/** A refusal says how long to wait. */
	saysHowLong: boolean;
}

const OUTCOMES: Record<Channel, Outcomes> = {
	telegram: { call: "sendMessage", error: "unavailable", saysHowLong: true },
	discord: { call: "POST messages", error: "unknown_outcome", saysHowLong: true },
	slack: { call: "chat.postMessage", error: "unknown_outcome", saysHowLong: true },
	whatsapp: { call: "messages", error: "unavailable", saysHowLong: false },
	imessage: { call: "message/text", error: "unknown_outcome", saysHowLong: false },
	signal: { call: "send", error: "unknown_outcome", saysHowLong: true },
	sms: { call: "messages.create", error: "unknown_outcome", saysHowLong: true },
	gmail: { call: "messages.send", error: "unknown_outcome", saysHowLong: true },
	nostr: { call: "EVENT reply", error: "unavailable", saysHowLong: false },
};

describe.each(CHANNELS)("%s", (channel) => {
	const { call, error, saysHowLong } = OUTCOMES[channel];
	let place: Place;
	let session: OpenSession;

	const open = async (settings: Place["settings"]) =>
		openSession(await loadPlatform(channel), settings, { clock: systemClock, state: memory() });

	beforeEach(async () => {
		place = await STARTS[channel]!();
		session = await open(place.settings);
	});
	afterEach(async () => {
		await session.close?.();
		await place.fake.close();
	});

	const creations = () => place.fake.calls.filter(({ name }) => name === call).length;
	const create = (kind: FakeFault["kind"], signal?: AbortSignal) => {
		place.fake.fault({ kind, count: 1, ms: 7000, call });
		return faultOf(session.create(place.target, "x", sendOptions("n1", signal)));
	};

	test("refused for its speed: rate limited, with the platform's own wait, and not tried again here", async () => {
		const retryAfterMs = saysHowLong ? 7000 : undefined;
		expect(await create("429")).toMatchObject({ fault: "rate_limited", retryAfterMs });
		expect(creations()).toBe(1);
	});

	test.each([
		["an error", "5xx", error, 0],
		["a connection that broke before", "reset_before", "unknown_outcome", 0],
		["a connection that broke after", "reset_after_accept", "unknown_outcome", 1],
	] as const)("%s: one call, its outcome, and no secret in its words", async (_, kind, fault, shown) => {
		const failed = await create(kind);
		expect(failed.fault).toBe(fault);
		expect([creations(), place.bubbles().length]).toEqual([1, shown]);
		for (const { name, secret } of (await loadPlatform(channel)).info.settings) {
			const value = place.settings[name];
			if (secret && value) expect(`${failed.message} ${String(failed.cause)}`).not.toContain(value);
		}
	});

	test("a refused connection: unavailable, because nothing happened", async () => {
		const dead = await STARTS[channel]!();
		await dead.fake.close();
		const other = await open(dead.settings);
		expect((await faultOf(other.create(place.target, "x", sendOptions()))).fault).toBe("unavailable");
		await other.close?.();
	});

	test("a call that hangs ends with its signal: unknown outcome", async () => {
		expect(
			(
				await create(
					"hang",
					abortedWhen(() => creations() === 1),
				)
			).fault,
		).toBe("unknown_outcome");
	});
});
