/** Wires the services for applications and their messages, sign-ins, accounts and health. */

import type { ReadinessJson } from "@nexus-stream/protocol/api";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Broker } from "../../broker/broker.ts";
import type { Nex, Outbound } from "../../nex/nex.ts";
import { createAccountSessions } from "../../services/accounts/accounts.ts";
import { createApplications } from "../../services/apps/apps.ts";
import { createAppMessages } from "../../services/apps/messages.ts";
import type { NoticeLogs } from "../../services/audit/notices.ts";
import type { Audit } from "../../services/audit/port.ts";
import { createRuntimeHealth } from "../../services/health/health.ts";
import type { RuntimeHealth } from "../../services/health/port.ts";
import type { Quota } from "../../services/kit/quota.ts";
import { createSignIns } from "../../services/signins/signins.ts";
import type { Store } from "../data/store.ts";
import type { Services } from "./port.ts";

export interface AppServiceParts extends Pick<Store, "bus" | "rows"> {
	broker: Pick<Broker, "liveRuns">;
	nex: Pick<Nex, "stats">;
	outbound: Pick<Outbound, "accounts" | "onAccounts">;
	readiness(): ReadinessJson;
	/** Waiting and active work, in addition to sessions. */
	work(): Pick<RuntimeHealth, "queueDepth" | "activeWorkflows" | "activeInferenceJobs">;
	notices: NoticeLogs;
	audit: Audit;
	quota: Quota;
	clock: Clock;
	log: Log;
}

export interface AppServices {
	services: Pick<Services, "apps" | "appMessages" | "signIns" | "accounts" | "health">;
	/** Call it before the ports open: until then only the owner's token is known. */
	load(): Promise<void>;
	close(): void;
}

export function createAppServices(parts: AppServiceParts): AppServices {
	const { bus, rows, outbound, notices, audit, quota, clock, log } = parts;
	const recorded = { bus, rows, clock, log, audit };
	const apps = createApplications(recorded);
	const signIns = createSignIns(recorded);
	const accounts = createAccountSessions({ platforms: outbound, signIns, clock, log });
	const health = healthOf(parts);
	return {
		services: {
			apps,
			appMessages: createAppMessages({ bus, rows, apps, notices, quota, clock }),
			signIns,
			accounts,
			health,
		},
		async load() {
			await Promise.all([apps.load(), signIns.load()]);
		},
		close() {
			for (const service of [apps, signIns, accounts, health]) service.close();
		},
	};
}

const healthOf = ({ broker, nex, readiness, work, clock, log }: AppServiceParts) =>
	createRuntimeHealth({
		status() {
			const { state, detail } = readiness();
			return { status: state, ...(detail !== undefined && { reason: detail }) };
		},
		work() {
			const { queueDepth, ...active } = work();
			return { ...active, queueDepth: nex.stats().waiting + queueDepth, activeRuns: broker.liveRuns().length };
		},
		usage() {
			const { user, system } = process.cpuUsage();
			return { cpuMicros: user + system, memoryBytes: process.memoryUsage.rss() };
		},
		clock,
		log,
	});
