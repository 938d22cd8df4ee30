/** Account sessions: how each account on a chat platform and each sign-in is. */

export type AccountSessionState = "connecting" | "connected" | "degraded" | "disconnected" | "expired" | "removed";

export interface AccountSession {
	/** `<channel>/<account>`, or the sign-in's id. */
	id: string;
	kind: "platform" | "sign-in";
	state: AccountSessionState;
	reason?: string;
	changedAt: number;
	/** When the daemon got to know it, or when it was signed in. */
	createdAt: number;
	/** Only for a sign-in. */
	expiresAt?: number;
}

/** A state feed: it begins with what is so now. */
export interface AccountSessions {
	list(): AccountSession[];
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (session: AccountSession) => void): () => void;
	close(): void;
}
