/** Whether a session's history is trusted: the owner's setting, otherwise the configuration. */

import type { Clock } from "@nexus-stream/protocol/clock";
import { own } from "@nexus-stream/protocol/own";
import type { Bus } from "../../bus/bus.ts";
import { executionWrites } from "../../ledger/execution/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { trustWrites } from "../../ledger/trust/port.ts";
import type { InboundConfig } from "../inbox/config.ts";

export interface Trust {
	of(session: string): Promise<boolean>;
	/** Applies to the session's next runs. */
	set(session: string, trusted: boolean): Promise<void>;
}

export interface TrustDeps {
	bus: Pick<Bus, "write">;
	ledger: Pick<Ledger, "trust">;
	config(): Pick<InboundConfig, "sessions">;
	clock: Clock;
}

/** The caller waits for the commit. */
const WRITE_MS_MAX = 1000;

export const createTrust = ({ bus, ledger, config, clock }: TrustDeps): Trust => ({
	async of(session) {
		const set = await ledger.trust.get(session);
		return set ?? own(config().sessions, session)?.trustHistory === true;
	},
	async set(session, trusted) {
		const at = clock.now();
		const text = trusted ? "the owner trusts the history" : "the owner trusts the history no longer";
		const entry = { session, at, kind: "note", text, data: { trust_history: trusted } };
		await bus.write([trustWrites.set(session, trusted, at), executionWrites.add([entry])], WRITE_MS_MAX);
	},
});
