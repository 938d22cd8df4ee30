/** The refusals of a store, the same in every implementation. */

import { NexusError, Refused } from "@nexus-stream/protocol";

export const fenced = (): Refused =>
	new Refused(
		"fenced",
		"another daemon has taken over what this one owned; stop this one, or let it serve readers only",
	);

export const ownedByAnother = (log: string): Refused =>
	new Refused("conflict", `log ${log} is written by another daemon, which is alive`);

export const noLiveLog = (log: string): NexusError => new NexusError("not_found", `no live log ${log}`);

export const existsAlready = (log: string): Refused => new Refused("duplicate", `log ${log} exists already`);

export const linkUnsealed = (chain: string): Refused =>
	new Refused("conflict", `the last log of ${chain} is not sealed yet; a restart recovers a log without a writer`);

export const beyond = (name: string, after: number, head: number) =>
	new NexusError("invalid", `offset ${after} is beyond the end of ${name}, which is at ${head}`);
