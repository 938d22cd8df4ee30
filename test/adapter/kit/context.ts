/** The kit's context on a platform that renders nothing and paces nothing, for tests of the parts of the kit. */

import { SentLog } from "../../../packages/adapter/src/memory/sent.ts";
import type { Pace, Session } from "../../../packages/adapter/src/platform/session.ts";
import type { AdapterInfo, SendStatus, StreamLine, StreamStatus } from "../../../packages/adapter/src/port.ts";
import { type AdapterContext, createAdapterContext } from "../../../packages/adapter/src/serve/context.ts";
import { createDeliveries } from "../../../packages/adapter/src/serve/deliver.ts";
import type { Clock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { type FlatSession, sessionOf } from "../session.ts";

export type Status = SendStatus | StreamStatus;

export interface KitOptions {
	session: Session;
	clock: Clock;
	info?: Partial<AdapterInfo>;
	pace?: Pace;
	say?(status: Status): void;
	random?(): number;
}

export function kitContext({ info, pace, say = () => {}, random = () => 0.5, ...given }: KitOptions): AdapterContext {
	const names = { channel: "memory", version: "1", protocol: 1, settings: [] };
	const platform = {
		info: { ...names, supports: ["stream"] as const, limits: { textMax: 1000, unit: "utf16" as const }, ...info },
		render: (markdown: string) => markdown,
		measure: (rendered: string) => rendered.length,
		pace: () => pace ?? { targetIntervalMs: 0 },
		open: () => Promise.reject(new Error("not opened here")),
	};
	const sent = new SentLog(undefined, given.clock);
	const fixed = { platform, sent, account: "a", log: silentLog, ready: async () => {} };
	return createAdapterContext({ ...fixed, ...given, random, say });
}

export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The `stream` verb without its process: everything it says, and a clock that only the test moves. */
export function kitStream(session: FlatSession, info: Partial<AdapterInfo> = {}) {
	const clock = manualClock(1000);
	const said: Status[] = [];
	const say = (status: Status) => void said.push(status);
	const deliveries = createDeliveries(kitContext({ session: sessionOf(session), clock, info, say }));
	/** Gives a line, and lets time pass. */
	const accept = async (line: object, ms = 1000): Promise<void> => {
		deliveries.accept(line as StreamLine);
		for (let step = 0; step < 10; step++) {
			clock.advance(ms / 10);
			await turn();
		}
	};
	return { clock, said, deliveries, accept };
}
