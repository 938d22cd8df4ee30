/** What a relay's refusals mean, and what several relays' answers mean together. */

import { PlatformError } from "@nexus-stream/adapter";
import type { PlatformFault } from "@nexus-stream/adapter/port";

/** What became of an event at one relay. */
export type RelayOutcome =
	| { at: "accepted" }
	/** It answered no. */
	| { at: "refused"; reason: string }
	/** It never got the event. */
	| { at: "unreached"; reason: string }
	/** It got the event and said nothing. */
	| { at: "unknown"; reason: string };

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

/** Which one is told when relays disagree: what passes by itself is worth another try. */
const PRECEDENCE: readonly PlatformFault[] = ["rate_limited", "unavailable", "denied", "invalid"];

export const faultOf = (reason: string): PlatformFault =>
	BY_PREFIX[/^([a-z-]+):/.exec(reason)?.[1] ?? ""] ?? "unavailable";

/** Taken once we have shown who we are. */
export const wantsProof = (reason: string): boolean => /^(?:auth-required|restricted):/.test(reason);

/** A relay that has the event says so in either way. */
export const isDuplicate = (reason: string): boolean => reason.startsWith("duplicate:");

export type RelayReport = readonly [relay: string, outcome: RelayOutcome];

/** Undefined: enough relays have it. */
export function verdict(reports: readonly RelayReport[], quorum: number): PlatformError | undefined {
	const accepted = reports.filter(([, { at }]) => at === "accepted").length;
	if (accepted >= quorum) return undefined;
	const words = reports.flatMap(([relay, outcome]) => ("reason" in outcome ? [`${relay}: ${outcome.reason}`] : []));
	const message = `${accepted} of ${reports.length} relays have it, ${quorum} should. ${words.join("; ")}`;
	// Somebody may read it already, so it is not "nothing happened".
	if (accepted > 0 || reports.some(([, { at }]) => at === "unknown"))
		return new PlatformError("unknown_outcome", message);
	const faults = reports.map(([, outcome]) => (outcome.at === "refused" ? faultOf(outcome.reason) : "unavailable"));
	return new PlatformError(PRECEDENCE.find((fault) => faults.includes(fault)) ?? "unavailable", message);
}
