/** The kit's context on a platform that renders nothing and paces nothing, for tests of the parts of the kit. */

import { SentLog } from "../../../packages/adapter/src/memory/sent.ts";
import type { Pace, Session } from "../../../packages/adapter/src/platform/session.ts";
import type { AdapterInfo, SendStatus, StreamStatus } from "../../../packages/adapter/src/port.ts";
import { type AdapterContext, createAdapterContext } from "../../../packages/adapter/src/serve/context.ts";
import type { Clock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";

export interface KitOptions {
	session: Session;
	clock: Clock;
	info?: Partial<AdapterInfo>;
	pace?: Pace;
	say?(status: SendStatus | StreamStatus): void;
	random?(): number;
}

export function kitContext({
	session,
	clock,
	info,
	pace,
	say = () => {},
	random = () => 0.5,
}: KitOptions): AdapterContext {
	const names = { channel: "memory", version: "1", protocol: 1, settings: [] };
	const platform = {
		info: { ...names, supports: ["stream"] as const, limits: { textMax: 1000, unit: "utf16" as const }, ...info },
		render: (markdown: string) => markdown,
		measure: (rendered: string) => rendered.length,
		pace: () => pace ?? { targetIntervalMs: 0 },
		open: () => Promise.reject(new Error("not opened here")),
	};
	const sent = new SentLog(undefined, clock);
	return createAdapterContext({
		platform,
		session,
		sent,
		account: "a",
		clock,
		random,
		log: silentLog,
		say,
		ready: async () => {},
	});
}
