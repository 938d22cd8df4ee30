/** A daemon among others on one store: takes over what dead nodes left, again and again, and ends when it was declared dead itself. */

import type { Random } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import type { Bus } from "../bus/bus.ts";
import type { DaemonParts } from "./compose.ts";
import type { Store } from "./data/store.ts";

interface RecoveryLoopParts extends Pick<Store, "bus" | "ledger" | "leaseMs" | "clock"> {
	log: Log;
	random?: Random;
	/** Takes over what dead nodes left. Each item is taken by a compare-and-set, so that several daemons may do so at once. */
	takeOver(): Promise<void>;
}

/** Takes over what nodes leave that die while this daemon runs. Returns how to stop it. */
export const keepTakingOver = (store: Store, { nex, outbound, running }: DaemonParts, log: Log) =>
	keepRecovering({
		...store,
		log,
		async takeOver() {
			const { recovered } = await nex.recover(() => outbound.takeOver());
			if (recovered > 0) log.warn({ recovered }, "settled runs that another daemon left behind");
			await running.takeOver();
		},
	});

/** The longest pause between two rounds, as a share of the lease: what a node left is taken over within the lease and two seconds. */
const PAUSE_SHARE = 1 / 6;

/** Declares silent nodes dead and takes over what they left, now and then and whenever a node has left. Returns how to stop it. */
function keepRecovering(parts: RecoveryLoopParts): () => Promise<void> {
	const { bus, clock, leaseMs, random = Math.random } = parts;
	const closing = new AbortController();
	const { signal } = closing;
	let round: Promise<void> | undefined;
	const recover = (first: () => Promise<unknown>): Promise<void> => {
		round ??= recoverOnce(parts, first, signal).finally(() => {
			round = undefined;
		});
		return round;
	};
	const loop = async () => {
		while (!signal.aborted) {
			await recover(() => bus.expire(leaseMs));
			// Several daemons do not ask the store at the same time.
			await sleep(clock, leaseMs * PAUSE_SHARE * (0.5 + random() / 2), signal);
		}
	};
	const stopListening = bus.listen("nodes", () => void recover(async () => {}));
	const looping = loop();
	return async () => {
		closing.abort();
		stopListening();
		await Promise.all([looping, round]);
	};
}

/** Never rejects: the next round tries again. */
async function recoverOnce(
	parts: RecoveryLoopParts,
	first: () => Promise<unknown>,
	signal: AbortSignal,
): Promise<void> {
	const { bus, log, takeOver } = parts;
	// A daemon without a lease may be dead itself.
	if (!bus.lease.isHeld) return;
	try {
		await first();
		if (!signal.aborted && (await isAnythingLeft(parts))) await takeOver();
	} catch (cause) {
		if (!signal.aborted && !bus.fenced.aborted)
			log.warn({ err: cause }, "what dead daemons left could not be taken over yet");
	}
}

async function isAnythingLeft({ bus, ledger }: RecoveryLoopParts): Promise<boolean> {
	if ((await bus.list({ orphaned: true, limit: 1 })).length > 0) return true;
	if ((await ledger.inbox.orphaned()).length > 0) return true;
	return (await ledger.deliveries.orphaned()).length > 0;
}

/** How long readers are served by a daemon that was declared dead: they resume elsewhere. */
const READERS_MS = 5000;

/** Resolves when a daemon that shares its store was declared dead and its readers had time to leave; never for one that is alone. */
export async function whenReplaced(
	{ bus, clock }: Pick<Store, "bus" | "clock">,
	{ nex, broker }: Pick<DaemonParts, "nex" | "broker">,
	log: Log,
): Promise<void> {
	await new Promise<void>((resolve) => {
		if (bus.isShared) bus.fenced.addEventListener("abort", () => resolve(), { once: true });
	});
	log.error({ readersMs: READERS_MS }, "other daemons have declared this one dead; it serves readers, then it ends");
	// It accepts no message that it could not keep, and its runs have ended elsewhere.
	nex.close();
	void broker.drain(0);
	await sleep(clock, READERS_MS, undefined, "due");
}

/** Why this daemon may not act outside the store; undefined while it may. */
export function leaseProblem({ fenced, lease }: Pick<Bus, "fenced" | "lease">): string | undefined {
	if (fenced.aborted) return "another daemon has taken over what this one owned";
	if (lease.isHeld) return undefined;
	return `the store has not answered for ${Math.round(lease.silentMs / 1000)} s: nothing is sent until it does`;
}
