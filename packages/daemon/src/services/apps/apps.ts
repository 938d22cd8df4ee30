/** Applications and their tokens: on record in the Ledger, known here in memory, so that a request costs one look-up. */

import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import type { Audit } from "../audit/port.ts";
import { checkedAppId, OWNER_APP, type Principal, requireOwner } from "../kit/principal.ts";
import type { AppInfo, Applications } from "./port.ts";
import { type App, type AppRows, appWrites } from "./rows.ts";

export interface ApplicationDeps {
	bus: Pick<Bus, "write" | "call" | "listen">;
	rows: { apps: AppRows };
	clock: Clock;
	log: Log;
	/** Commits with what it tells of. */
	audit: Audit;
	/** With a good token. */
	appsMax?: number;
}

/** Names the kind of secret, for people and for scanners that look for leaked ones. */
const TOKEN_PREFIX = "nxa_";
const TOKEN_BYTES = 32;
const APPS_MAX = 1000;
const NAME_CHARS_MAX = 200;
/** Other daemons of the same store read the list again. */
const TOPIC = "apps";
/** A look-up may leak this part of the hash by its timing. No caller can derive a token from it. */
const KEY_CHARS = 16;

interface AppTokenEntry {
	appId: string;
	hash: Buffer;
	ending: AbortController;
}

const digest = (token: string): Buffer => hash("sha256", token, "buffer");
const keyOf = (tokenHash: string): string => tokenHash.slice(0, KEY_CHARS);

export function createApplications(deps: ApplicationDeps): Applications {
	const { bus, rows, clock, log, audit, appsMax = APPS_MAX } = deps;
	let apps: readonly App[] = [];
	const entries = new Map<string, AppTokenEntry>();
	const take = (next: readonly App[]) => {
		apps = next;
		const good = new Map(next.flatMap((app) => (app.revokedAt === undefined ? [[keyOf(app.tokenHash), app]] : [])));
		for (const [key, { hash, ending }] of entries) {
			if (good.get(key)?.tokenHash === hash.toString("hex")) continue;
			entries.delete(key);
			ending.abort(new NexusError("unauthenticated", "this application was removed"));
		}
		for (const [key, { id, tokenHash }] of good) {
			if (!entries.has(key))
				entries.set(key, { appId: id, hash: Buffer.from(tokenHash, "hex"), ending: new AbortController() });
		}
	};
	const has = (id: string) => apps.some((app) => app.id === id && app.revokedAt === undefined);
	const reload = async () => take(await rows.apps.list());
	/** Applies the committed list here, and makes the other daemons read it again. */
	const changed = async () => {
		await reload();
		await bus.call(TOPIC);
	};
	const stop = bus.listen(TOPIC, () => {
		reload().catch((cause: unknown) => log.error({ err: cause }, "the list of applications could not be read"));
	});
	const told = (operation: string, appId: string, { address }: Principal) =>
		audit({ domain: "apps", operation, appId, caller: address });
	return {
		load: reload,
		authenticate(token) {
			if (!token.startsWith(TOKEN_PREFIX)) return undefined;
			const found = digest(token);
			const entry = entries.get(keyOf(found.toString("hex")));
			if (!entry || !timingSafeEqual(entry.hash, found)) return undefined;
			return { appId: entry.appId, ended: entry.ending.signal };
		},
		has,
		list: () => apps.map(infoOf),
		async add({ id, name = id }, principal) {
			requireOwner(principal);
			check(id, name);
			if (has(id))
				throw new NexusError("conflict", `there is an application ${id} already; remove it to get a new token`);
			const token = TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString("base64url");
			const app = { id, name, tokenHash: digest(token).toString("hex"), createdAt: clock.now() };
			await bus.write([appWrites.add(app, { appsMax }), told("added", id, principal)]);
			await changed();
			return { app: infoOf(app), token };
		},
		async remove(id, principal) {
			requireOwner(principal);
			checkedAppId(id);
			if (!has(id)) throw new NexusError("not_found", `there is no application ${id}`);
			await bus.write([appWrites.revoke(id, clock.now()), told("removed", id, principal)]);
			await changed();
		},
		close: stop,
	};
}

function check(id: string, name: string): void {
	if (checkedAppId(id) === OWNER_APP)
		throw new NexusError("invalid", `app_id: \`${OWNER_APP}\` is the owner's own; choose another`);
	if (name.length > NAME_CHARS_MAX)
		throw new NexusError("invalid", `an application's name has at most ${NAME_CHARS_MAX} characters`);
}

const infoOf = ({ id, name, createdAt, revokedAt }: App): AppInfo => ({ id, name, createdAt, revokedAt });
