/** Audit entries about the daemon's own configuration: names and a digest, never a value. */

import { createHmac } from "node:crypto";
import type { AccountChanges } from "../../nex/nex.ts";
import type { AuditPayload } from "../../services/audit/port.ts";
import type { NexusConfig } from "../config/config.ts";
import { packageVersion } from "../package.ts";

/** Two starts with the same digest had the same configuration. Keyed with the token, so that a short secret cannot be guessed from it. */
export const startedWith = (config: NexusConfig, token: string, engine: string): AuditPayload => ({
	version: packageVersion(),
	engine,
	config_digest: createHmac("sha256", token).update(JSON.stringify(config)).digest("hex").slice(0, 32),
});

export function changedAccounts(changes: AccountChanges): AuditPayload {
	const names = (accounts: AccountChanges["added"]) => accounts.map(({ channel, id }) => `${channel}/${id}`).join(" ");
	return { added: names(changes.added), changed: names(changes.changed), removed: names(changes.removed) };
}
