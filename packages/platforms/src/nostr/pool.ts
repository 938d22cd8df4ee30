/** The account's relays together: an event is out when enough of them have it. */

import { PlatformError } from "@nexus-stream/adapter";
import type { PlatformFault } from "@nexus-stream/adapter/port";
import { systemClock, within } from "@nexus-stream/protocol/clock";
import type { Event } from "nostr-tools/core";
import type { Keys } from "./keys.ts";
import { Relay, type RelayOutcome } from "./relay.ts";

/** How long relays beyond the quorum may take when the process ends. */
const CLOSE_MS = 1000;

export class Pool {
	readonly relays: readonly Relay[];
	readonly quorum: number;
	readonly #underWay = new Set<Promise<unknown>>();

	constructor(urls: readonly string[], quorum: number, keys: Keys) {
		this.relays = urls.map((url) => new Relay(url, keys));
		this.quorum = quorum;
	}

	/** Resolves as soon as the quorum has it; the other relays get it all the same. */
	async publish(event: Event, signal?: AbortSignal): Promise<void> {
		const told: RelayReport[] = [];
		const { promise, resolve } = Promise.withResolvers<void>();
		for (const relay of this.relays) {
			const work = relay.publish(event, signal).then((outcome) => {
				told.push([relay.url, outcome]);
				const accepted = told.filter(([, { at }]) => at === "accepted").length;
				if (accepted >= this.quorum || told.length === this.relays.length) resolve();
			});
			this.#underWay.add(work);
			void work.finally(() => this.#underWay.delete(work));
		}
		await promise;
		const error = verdict(told, this.quorum);
		if (error) throw error;
	}

	pass(event: Event): void {
		for (const relay of this.relays) relay.pass(event);
	}

	async reachable(): Promise<{ count: number; failures: string[] }> {
		const tries = await Promise.allSettled(this.relays.map((relay) => relay.reach()));
		const failures = tries.flatMap((each) => (each.status === "rejected" ? [String(each.reason.message)] : []));
		return { count: tries.length - failures.length, failures };
	}

	async close(): Promise<void> {
		await within(systemClock, CLOSE_MS, Promise.allSettled(this.#underWay));
		for (const relay of this.relays) relay.close();
	}
}

const BY_PREFIX: Readonly<Record<string, PlatformFault>> = {
	"rate-limited": "rate_limited",
	blocked: "denied",
	restricted: "denied",
	"auth-required": "denied",
	pow: "denied",
	mute: "denied",
	invalid: "invalid",
	error: "unavailable",
};

/** Which fault is reported when relays disagree: a transient one is worth another try. */
const PRECEDENCE: readonly PlatformFault[] = ["rate_limited", "unavailable", "denied", "invalid"];

export const faultOf = (reason: string): PlatformFault =>
	BY_PREFIX[/^([a-z-]+):/.exec(reason)?.[1] ?? ""] ?? "unavailable";

export type RelayReport = readonly [relay: string, outcome: RelayOutcome];

/** Undefined: enough relays have it. */
export function verdict(reports: readonly RelayReport[], quorum: number): PlatformError | undefined {
	const accepted = reports.filter(([, { at }]) => at === "accepted").length;
	if (accepted >= quorum) return undefined;
	const words = reports.flatMap(([relay, outcome]) => ("reason" in outcome ? [`${relay}: ${outcome.reason}`] : []));
	const message = `${accepted} of ${reports.length} relays have it, ${quorum} should. ${words.join("; ")}`;
	// People may already read it, so the outcome is unknown.
	if (accepted > 0 || reports.some(([, { at }]) => at === "unknown"))
		return new PlatformError("unknown_outcome", message);
	const faults = reports.map(([, outcome]) => (outcome.at === "refused" ? faultOf(outcome.reason) : "unavailable"));
	return new PlatformError(PRECEDENCE.find((fault) => faults.includes(fault)) ?? "unavailable", message);
}

/** A wrong address is not shown: what people write there may carry a password. */
export function readRelays(given: string): string[] {
	const urls = given.split(/[\s,]+/).filter((each) => each !== "");
	const isAddress = (each: string) => /^wss?:$/.test(URL.parse(each)?.protocol ?? "");
	if (urls.length === 0 || !urls.every(isAddress)) {
		throw new PlatformError(
			"invalid",
			"relays must be addresses that begin with wss:// or ws://, with spaces between.",
		);
	}
	return [...new Set(urls.map((each) => new URL(each).href))];
}

export function readQuorum(given: string, relays: number): number {
	const quorum = Number(given);
	if (Number.isInteger(quorum) && quorum >= 1 && quorum <= relays) return quorum;
	throw new PlatformError(
		"invalid",
		`quorum must be a whole number from 1 to the number of relays, which is ${relays}.`,
	);
}
