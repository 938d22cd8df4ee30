/** Scenarios: admits model calls, starts them as runs without a session, and hands out their logs. */

import { createHash } from "node:crypto";
import { LOG_KINDS, NexusError, newRunId, type Random, type Reason, reasonOfEnd } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { type Log, silentLog } from "@nexus-stream/protocol/log";
import { createModelCalls, type ModelCallEnd } from "../../broker/broker.ts";
import type { Bus, Cursor, LogInfo } from "../../bus/bus.ts";
import { ADMIT_MS_MAX } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import type { Audit } from "../audit/port.ts";
import type { Connectors, Media, Provider } from "../connectors/port.ts";
import { gone } from "../kit/gone.ts";
import { once } from "../kit/once.ts";
import { type Principal, seesApp } from "../kit/principal.ts";
import type { Quota } from "../kit/quota.ts";
import type { IdempotencyRows } from "../kit/rows.ts";
import { admitScenario } from "./admission.ts";
import { callOf, providerFailure } from "./calls.ts";
import { outcomeOf } from "./outcome.ts";
import {
	type AdmittedScenario,
	FIRST_PACKET_MS,
	type ScenarioFacts,
	type ScenarioOutcome,
	type ScenarioRequest,
	type Scenarios,
	type StartedScenario,
	type StartOptions,
} from "./port.ts";
import { scrubbedError, scrubbedProvider } from "./scrub.ts";
import { noUserTokens, type VerifyUserToken } from "./user-token.ts";

/** Characters of the text, or of the audio as base64 (12 MiB of sound). */
const ANSWER_CHARS_MAX = 16 * 1024 * 1024;

/** Model calls of one application at a time: an answer is in memory while it comes. */
const LIVE_PER_APP_MAX = 2048;

export interface ScenariosOptions {
	bus: Bus;
	rows: { idempotency: IdempotencyRows };
	connectors: Connectors;
	/** Left out: no user token is taken. */
	verifyUser?: VerifyUserToken | undefined;
	audit?: Audit;
	abortGraceMs?: number | undefined;
	livePerAppMax?: number;
	/** Left out: applications store what they like. */
	quota?: Pick<Quota, "check">;
	clock?: Clock;
	log?: Log;
	random?: Random;
}

export const createScenarios = (options: ScenariosOptions): Scenarios => new RunningScenarios(options);

class RunningScenarios implements Scenarios {
	readonly #options: ScenariosOptions & { clock: Clock; verifyUser: VerifyUserToken };
	readonly #runs: ReturnType<typeof createModelCalls>;
	/** By application. */
	readonly #live = new Map<string, number>();

	constructor(options: ScenariosOptions) {
		const { clock = systemClock, verifyUser = noUserTokens, log = silentLog, bus, abortGraceMs } = options;
		this.#options = { ...options, clock, verifyUser };
		this.#runs = createModelCalls({
			bus,
			clock,
			log,
			limits: abortGraceMs === undefined ? {} : { abortGraceMs },
			settleOrphan: (info, end) => this.#auditEnd(info.log, factsOf(info), end),
		});
	}

	get live(): number {
		return this.#runs.live;
	}

	admit(request: ScenarioRequest, principal: Principal): Promise<AdmittedScenario> {
		return admitScenario(this.#options, request, principal);
	}

	async start(admitted: AdmittedScenario, options: StartOptions = {}): Promise<StartedScenario> {
		const { clock, random } = this.#options;
		const { idempotencyKey: key, runId = newRunId(clock.now(), random) } = options;
		const request = { appId: admitted.appId, key, body: bodyOf(admitted, options.audio), result: runId };
		const { id, isFirst } = await once(this.#options, request, (claim) =>
			this.#begin(admitted, runId, { ...options, begin: [...claim, ...(options.begin ?? [])] }),
		);
		const outcome = () => this.#outcome(id);
		return {
			runId: id,
			isFirst,
			get outcome() {
				return outcome();
			},
		};
	}

	async provider({ source }: AdmittedScenario): Promise<Provider> {
		const { connectors } = this.#options;
		if ("connector" in source) return connectors.open(source.connector);
		try {
			return scrubbedProvider(await connectors.openInline(source.inline), source.inline);
		} catch (cause) {
			throw scrubbedError(cause, source.inline.apiKey);
		}
	}

	async facts(runId: string, principal: Principal): Promise<ScenarioFacts> {
		return factsOf(await this.#find(runId, principal));
	}

	async cursor(runId: string, after: number, principal: Principal): Promise<Cursor> {
		const { sealedAt, head } = await this.#find(runId, principal);
		const isOver = sealedAt !== undefined;
		if (!isOver && after > head) throw new NexusError("invalid", `the run has ${head} records so far, not ${after}`);
		return this.#options.bus.cursor({ log: runId }, isOver ? Math.min(after, head - 1) : after);
	}

	abort(runId: string, principal: Principal): Promise<ScenarioOutcome> | undefined {
		const live = this.#runs.find(runId);
		if (!live || !seesApp(principal, (live.meta as unknown as ScenarioFacts).appId)) return undefined;
		return this.#runs.abort(runId)?.then(() => this.#outcome(runId));
	}

	recover(): Promise<number> {
		return this.#runs.recover("scenario");
	}

	drain(deadlineMs: number): Promise<void> {
		return this.#runs.drain(deadlineMs);
	}

	async #begin(admitted: AdmittedScenario, runId: string, options: StartOptions): Promise<void> {
		await this.#options.quota?.check(admitted.appId, 1);
		const leave = this.#enter(admitted.appId);
		try {
			void (await this.#call(admitted, runId, options)).ended.then(leave, leave);
		} catch (cause) {
			leave();
			throw cause;
		}
	}

	/** Counts one more; returns how to count it out. */
	#enter(appId: string): () => void {
		const { livePerAppMax = LIVE_PER_APP_MAX } = this.#options;
		const count = this.#live.get(appId) ?? 0;
		if (count >= livePerAppMax)
			throw new NexusError("busy", `${appId} has ${livePerAppMax} model calls under way; try later`);
		this.#live.set(appId, count + 1);
		return () => {
			const left = this.#live.get(appId)! - 1;
			if (left === 0) this.#live.delete(appId);
			else this.#live.set(appId, left);
		};
	}

	async #call(admitted: AdmittedScenario, runId: string, { begin = [], audio, patient }: StartOptions) {
		const { appId, userId, model, timeoutMs: totalMs, spec, source, caller } = admitted;
		const { quota } = this.#options;
		const provider = await this.provider(admitted);
		const connectorId = "connector" in source ? source.connector.id : undefined;
		const facts = {
			appId,
			userId,
			kind: spec.kind,
			model,
			demo: provider.demo,
			...(connectorId !== undefined && { connectorId }),
		};
		const { ended } = await this.#runs.start({
			runId,
			kind: "scenario",
			meta: facts,
			countedFor: appId,
			model,
			totalMs,
			firstEventMs: FIRST_PACKET_MS,
			patienceMs: patient ? undefined : ADMIT_MS_MAX,
			charsMax: ANSWER_CHARS_MAX,
			room: quota ? () => quota.check(appId, 1) : undefined,
			run: callOf(admitted, provider, audio),
			begin: [...begin, ...this.#audit("started", runId, facts, { caller })],
			settle: (end) => this.#auditEnd(runId, facts, end),
			failure: providerFailure,
		});
		if (connectorId !== undefined) void ended.then((end) => this.#report(connectorId, end));
		return { ended };
	}

	async #find(runId: string, principal: Principal): Promise<LogInfo> {
		const { bus, clock } = this.#options;
		const info = await bus.describe(runId);
		if (info?.kind === "scenario" && seesApp(principal, factsOf(info).appId)) return info;
		throw gone("scenario run", runId, LOG_KINDS.scenario.keptMs, clock.now());
	}

	#outcome(runId: string): Promise<ScenarioOutcome> {
		return outcomeOf(() => this.#options.bus.cursor({ log: runId }, 0));
	}

	/** Other calls tell themselves how their provider is; one that never answered cannot. */
	#report(connectorId: string, { reason, error }: ModelCallEnd): void {
		if (reason !== "timeout" || !error) return;
		const late = new NexusError("timeout", error.message, { reason: "AI_PROVIDER_TIMEOUT" });
		this.#options.connectors.report(connectorId, { ok: false, error: late });
	}

	#auditEnd(runId: string, facts: AuditedFacts, end: ModelCallEnd): readonly Write[] {
		const operation = end.reason === "completed" || end.reason === "aborted" ? end.reason : "failed";
		return this.#audit(operation, runId, facts, { reason: reasonOfEnd(end) });
	}

	#audit(
		operation: "started" | ScenarioOutcome["status"],
		runId: string,
		facts: AuditedFacts,
		{ reason = "UNSPECIFIED", caller }: { reason?: Reason; caller?: string | undefined },
	): readonly Write[] {
		const { audit } = this.#options;
		const { appId, userId, kind, model, connectorId = "inline" } = facts;
		if (!audit) return [];
		const payload = { run_id: runId, kind, model, connector_id: connectorId };
		const entry = { domain: "scenarios", operation, appId, userId, payload, reason };
		return [audit({ ...entry, caller })];
	}
}

type AuditedFacts = Pick<ScenarioFacts, "appId" | "userId" | "model" | "connectorId"> & { kind: string };

const factsOf = ({ meta }: LogInfo): ScenarioFacts => meta as ScenarioFacts;

/** The fields by which requests with one idempotency key are compared. A request's own credential is in nothing that is stored. */
function bodyOf({ spec, model, userId, timeoutMs, source }: AdmittedScenario, audio?: Media): unknown {
	const heard = audio && createHash("sha256").update(audio.data).digest("hex");
	const asked = { call: "scenario", spec, model, userId, timeoutMs, heard };
	if ("connector" in source) return { ...asked, connector: source.connector.id };
	const { providerType, endpoint } = source.inline;
	return { ...asked, inline: { providerType, endpoint } };
}
