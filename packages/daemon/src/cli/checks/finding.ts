/** A check of `nexus doctor` and its result. */

export interface Finding {
	check: string;
	result: "ok" | "warn" | "fail";
	detail: string;
	/** The remedy, when there is something to do. */
	todo?: string;
}

export type Seen = Omit<Finding, "check">;
export type Check = [name: string, look: () => Promise<Seen>];

export const ok = (detail: string): Seen => ({ result: "ok", detail });
export const warn = (detail: string, todo: string): Seen => ({ result: "warn", detail, todo });
export const fail = (detail: string, todo: string): Seen => ({ result: "fail", detail, todo });
