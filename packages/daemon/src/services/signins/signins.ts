/** Sign-ins on record in the Ledger and known here in memory. One timer waits for the next that expires. */

import { NexusError, newId, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import { type Audit, type AuditEntry, Flood } from "../audit/port.ts";
import { type Listeners, listeners } from "../kit/listeners.ts";
import type { SignInInfo, SignInRegister } from "./port.ts";
import { type SignInRows, type StoredSignIn, signInWrites } from "./rows.ts";

export interface SignInDeps {
	bus: Pick<Bus, "write" | "call" | "listen">;
	rows: { signins: SignInRows };
	clock: Clock;
	log: Log;
	audit: Audit;
}

const TOPIC = "signins";
/** How long one that ended is still shown. */
const SHOWN_MS = 24 * 60 * 60_000;
/** A browser waits for the answer. */
const PATIENCE_MS = 5000;
/** The owner alone can sign in, but a script may do so with every call: then the oldest are signed out. */
const SIGN_INS_MAX = 1000;

interface SignInEntry {
	info: SignInInfo;
	ending: AbortController;
}

export const createSignIns = (deps: SignInDeps): SignInRegister => new Register(deps);

class Register implements SignInRegister {
	readonly #deps: SignInDeps;
	readonly #entries = new Map<string, SignInEntry>();
	readonly #listeners: Listeners<SignInInfo>;
	readonly #stop: () => void;
	/** Anybody can try: strangers must not be able to fill the disk. */
	readonly #refusals = new Flood();
	#cancel = () => {};

	constructor(deps: SignInDeps) {
		this.#deps = deps;
		this.#listeners = listeners(deps.log);
		this.#stop = deps.bus.listen(TOPIC, () => void this.load().catch(this.#failed));
	}

	find(id: string): { ended: AbortSignal } | undefined {
		const entry = this.#entries.get(id);
		if (entry?.info.state !== "connected") return undefined;
		return entry.info.expiresAt > this.#deps.clock.now() ? { ended: entry.ending.signal } : undefined;
	}

	async open(address: string, lastsMs: number): Promise<{ id: string }> {
		const now = this.#deps.clock.now();
		const row = { id: newId("signin", now), address, createdAt: now, expiresAt: now + lastsMs };
		const oldest = this.#good().slice(0, Math.max(0, this.#good().length + 1 - SIGN_INS_MAX));
		await this.#write([
			signInWrites.forget(now - SHOWN_MS),
			signInWrites.add(row),
			...oldest.map(({ id }) => signInWrites.revoke(id, now)),
			this.#audited({ operation: "signed_in", caller: address, payload: { sign_in: row.id } }),
		]);
		for (const { id } of oldest) this.#end(id, "removed", now);
		this.#take(row);
		this.#expire();
		return { id: row.id };
	}

	async end(id: string, { address }: { address: string }): Promise<void> {
		if (!this.find(id)) return;
		const now = this.#deps.clock.now();
		await this.#write([
			signInWrites.revoke(id, now),
			this.#audited({ operation: "signed_out", caller: address, payload: { sign_in: id } }),
		]);
		this.#end(id, "removed", now);
	}

	refused(address: string, count: number): void {
		const told = this.#refusals.next(this.#deps.clock.now());
		if (!told) return;
		const write = this.#audited({
			operation: "refused",
			reason: "UNAUTHENTICATED",
			caller: address,
			payload: { count, ...told },
		});
		this.#deps.bus.write([write]).catch(this.#failed);
	}

	list(): SignInInfo[] {
		this.#expire();
		return [...this.#entries.values()].map(({ info }) => info);
	}

	subscribe(listener: (signIn: SignInInfo) => void): () => void {
		return this.#listeners.add(listener);
	}

	close(): void {
		this.#stop();
		this.#cancel();
	}

	/** Reads the store, because another daemon may have changed it. */
	async load(): Promise<void> {
		for (const row of await this.#deps.rows.signins.list()) this.#take(row);
		this.#expire();
	}

	#good(): SignInInfo[] {
		return this.list().filter(({ state }) => state === "connected");
	}

	#take(row: StoredSignIn): void {
		const known = this.#entries.get(row.id);
		if (known && row.revokedAt !== undefined) this.#end(row.id, "removed", row.revokedAt);
		if (known) return;
		const { revokedAt, ...signIn } = row;
		const state = revokedAt === undefined ? "connected" : "removed";
		const info: SignInInfo = { ...signIn, state, changedAt: revokedAt ?? row.createdAt };
		this.#entries.set(row.id, { info, ending: new AbortController() });
		this.#listeners.tell(info);
	}

	#end(id: string, state: "expired" | "removed", at: number): void {
		const entry = this.#entries.get(id);
		if (entry?.info.state !== "connected") return;
		entry.info = { ...entry.info, state, changedAt: at };
		entry.ending.abort(new NexusError("unauthenticated", "this browser is signed in no more"));
		this.#listeners.tell(entry.info);
	}

	/** Ends those whose time is over, forgets those that ended long ago, and waits for the next. */
	#expire(): void {
		const { clock } = this.#deps;
		const now = clock.now();
		let next = Number.POSITIVE_INFINITY;
		for (const [id, entry] of this.#entries) {
			const { expiresAt } = entry.info;
			if (expiresAt <= now) this.#end(id, "expired", expiresAt);
			if (entry.info.state === "connected") next = Math.min(next, expiresAt);
			else if (entry.info.changedAt < now - SHOWN_MS) this.#entries.delete(id);
		}
		this.#cancel();
		if (next < Number.POSITIVE_INFINITY) this.#cancel = clock.after(next - now, () => this.#expire());
	}

	async #write(writes: Parameters<Bus["write"]>[0]): Promise<void> {
		try {
			await this.#deps.bus.write(writes, PATIENCE_MS);
		} catch (cause) {
			const { code, message } = toNexusError(cause);
			throw new NexusError(code, `the sign-in could not be recorded: ${message}`, { cause });
		}
		await this.#deps.bus.call(TOPIC);
	}

	#audited(entry: Omit<AuditEntry, "domain">): Write {
		return this.#deps.audit({ domain: "sign-in", ...entry });
	}

	readonly #failed = (cause: unknown): void => {
		this.#deps.log.error({ err: cause }, "sign-ins could not be read or recorded");
	};
}
