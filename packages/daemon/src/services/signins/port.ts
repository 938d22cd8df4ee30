/** Sign-ins: which browsers are signed in, and how that ends. */

import type { Principal } from "../kit/principal.ts";

export interface SignInInfo {
	id: string;
	/** From where. */
	address: string;
	state: "connected" | "expired" | "removed";
	createdAt: number;
	expiresAt: number;
	changedAt: number;
}

export interface SignInRegister {
	/** Gets to know all of them: before that there is none. */
	load(): Promise<void>;
	/** At once and without a look at the store: every request of a page asks. Undefined when it is over or never was. */
	find(id: string): { ended: AbortSignal } | undefined;
	/** Resolves once it is on record: it outlives restarts. */
	open(address: string, lastsMs: number): Promise<{ id: string }>;
	/** Signs it out: it is over at once, and so are its streams. Nothing happens to one that is over. */
	end(id: string, principal: Principal): Promise<void>;
	/** Tells that somebody could not prove who they are, `count` times. */
	refused(address: string, count: number): void;
	/** Those that are good, and those that ended within a day. */
	list(): SignInInfo[];
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (signIn: SignInInfo) => void): () => void;
	close(): void;
}
