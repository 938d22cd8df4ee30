/** Sign-ins: which browsers are signed in, and how that ends. */

import type { SignIns } from "../../edge/edge.ts";

export interface SignInInfo {
	id: string;
	address: string;
	state: "connected" | "expired" | "removed";
	createdAt: number;
	expiresAt: number;
	changedAt: number;
}

export interface SignInRegister extends SignIns {
	/** Reads all sign-ins; `find` knows none before. */
	load(): Promise<void>;
	/** Sign-ins that are valid or that ended within a day. */
	list(): SignInInfo[];
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (signIn: SignInInfo) => void): () => void;
	close(): void;
}
