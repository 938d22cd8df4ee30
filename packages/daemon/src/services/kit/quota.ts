/** How much of the disk an application may take: everything that is stored for it counts, whatever made it. */

import { NexusError } from "@nexus-stream/protocol";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Bus } from "../../bus/bus.ts";
import type { Reading } from "../../std/write.ts";

/** Bytes of everything that is stored for one application. */
export const QUOTA_LIMITS = { bytesPerAppMax: 2 * 1024 ** 3 };

export type QuotaLimits = typeof QUOTA_LIMITS;

/** In bytes, by what they are. */
export interface StoredBytes {
	/** With their requests and results. */
	jobs: number;
	/** With their definitions and outputs. */
	workflows: number;
	/** Logs of model calls, jobs, workflows and realtime sessions. */
	logs: number;
	/** An unfinished upload counts with the size that it announced. */
	artifacts: number;
	/** Messages that the application has sent. */
	messages: number;
}

/** Rows that know how much of the store one application takes. */
interface Sized {
	bytes(appId: string): Reading<number>;
}

export interface QuotaDeps {
	bus: Pick<Bus, "bytesOf">;
	rows: {
		jobs: Sized;
		workflows: Sized;
		artifacts: { usage(appId: string): Reading<{ bytes: number }> };
		notices: Sized;
	};
	limits?: Partial<QuotaLimits> | undefined;
}

export type Quota = ReturnType<typeof createQuota>;

export function createQuota({ bus, rows, limits }: QuotaDeps) {
	const { bytesPerAppMax } = withDefaults(QUOTA_LIMITS, limits);
	/** Bytes that are on their way into the store, by application. */
	const held = new Map<string, number>();
	const hold = (appId: string, bytes: number) => {
		const next = (held.get(appId) ?? 0) + bytes;
		if (next === 0) held.delete(appId);
		else held.set(appId, next);
	};
	const usage = async (appId: string): Promise<StoredBytes> => ({
		jobs: await rows.jobs.bytes(appId),
		workflows: await rows.workflows.bytes(appId),
		logs: await bus.bytesOf(appId),
		artifacts: (await rows.artifacts.usage(appId)).bytes,
		messages: await rows.notices.bytes(appId),
	});
	/** Rejects with `busy` (QUOTA_EXCEEDED) when the bytes would exceed the quota. */
	const check = async (appId: string, bytes: number): Promise<void> => {
		const stored = await usage(appId);
		if (storedTotal(stored) + (held.get(appId) ?? 0) + bytes > bytesPerAppMax)
			throw exceeded(appId, stored, bytesPerAppMax);
	};
	return {
		bytesPerAppMax,
		usage,
		check,
		/** Does the work if there is room for what it stores; until it is done, that counts already. */
		async holding<T>(appId: string, bytes: number, work: () => Promise<T>): Promise<T> {
			await check(appId, bytes);
			hold(appId, bytes);
			try {
				return await work();
			} finally {
				hold(appId, -bytes);
			}
		},
	};
}

export const storedTotal = (stored: StoredBytes): number =>
	Object.values(stored).reduce<number>((sum, bytes) => sum + bytes, 0);

function exceeded(appId: string, stored: StoredBytes, bytesPerAppMax: number): NexusError {
	const parts = Object.entries(stored).filter(([, bytes]) => bytes > 0);
	const shown = parts.map(([what, bytes]) => `${what} ${bytes}`).join(", ") || "nothing yet";
	return new NexusError(
		"busy",
		`${appId} may store ${bytesPerAppMax} bytes and has no room for this (${shown}): the owner can remove what has ended with \`nexus app clear ${appId}\`, or raise apps.bytesPerAppMax; retention removes it with time`,
		{ reason: "QUOTA_EXCEEDED" },
	);
}
