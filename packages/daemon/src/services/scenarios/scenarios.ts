/** Scenarios: admits model calls, starts them as runs without a session, and hands out their logs. */

import { createHash } from "node:crypto";
import { NexusError, newRunId, reasonOfEnd } from "@nexus-stream/protocol";
import { type ModelCallEnd, ModelCalls } from "../../broker/broker.ts";
import { ADMIT_MS_MAX, type Cursor, type LogInfo } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import type { Connectors, Media } from "../connectors/port.ts";
import { DurableWork, type DurableWorkDeps } from "../kit/durable-work.ts";
import { once } from "../kit/once.ts";
import { type Principal, seesApp } from "../kit/principal.ts";
import { admitScenario, readmitScenario } from "./admission.ts";
import { callOf, providerFailure } from "./calls.ts";
import type { VerifyUserToken } from "./metadata.ts";
import { outcomeOf, textSoFar } from "./outcome.ts";
import {
	type AdmittedScenario,
	FIRST_PACKET_MS,
	type ScenarioFacts,
	type ScenarioOutcome,
	type ScenarioRequest,
	type Scenarios,
	type StartedScenario,
	type StartOptions,
	type StoredScenario,
} from "./port.ts";

/** Characters of the text, or of the audio as base64 (12 MiB of sound). */
const ANSWER_CHARS_MAX = 16 * 1024 * 1024;

/** Model calls of one application at a time: an answer is in memory while it comes. */
const LIVE_PER_APP_MAX = 2048;

export interface ScenariosOptions extends DurableWorkDeps {
	connectors: Connectors;
	verifyUser: VerifyUserToken;
	abortGraceMs?: number;
	livePerAppMax?: number;
}

export const createScenarios = (options: ScenariosOptions): Scenarios => new RunningScenarios(options);

class RunningScenarios implements Scenarios {
	readonly #options: ScenariosOptions;
	readonly #runs: ModelCalls;
	readonly #work: DurableWork;
	/** By application. */
	readonly #live = new Map<string, number>();

	constructor(options: ScenariosOptions) {
		this.#options = options;
		const { bus, clock, log, abortGraceMs } = options;
		this.#work = new DurableWork(
			{
				kind: "scenario",
				noun: "scenario run",
				domain: "scenarios",
				appOf: (_, info) => info && factsOf(info).appId,
			},
			options,
		);
		this.#runs = new ModelCalls({
			bus,
			clock,
			log,
			limits: { abortGraceMs },
			settleOrphan: (info, end) => this.#auditEnd(info.log, factsOf(info), end),
		});
	}

	get live(): number {
		return this.#runs.live;
	}

	admit(request: ScenarioRequest, principal: Principal): Promise<AdmittedScenario> {
		return admitScenario(this.#options, request, principal);
	}

	readmit(stored: StoredScenario): Promise<AdmittedScenario> {
		return readmitScenario(this.#options, stored);
	}

	async start(admitted: AdmittedScenario, options: StartOptions = {}): Promise<StartedScenario> {
		const { idempotencyKey: key, runId = newRunId(this.#options.clock.now()) } = options;
		const request = { appId: admitted.appId, key, body: bodyOf(admitted, options.audio), result: runId };
		const { id, isFirst } = await once(this.#options, request, (claim) =>
			this.#begin(admitted, runId, { ...options, begin: [...claim, ...(options.begin ?? [])] }),
		);
		return {
			runId: id,
			isFirst,
			outcome: (grew) => this.#outcome(id, grew),
			abort: () => void this.#runs.abort(id),
		};
	}

	async facts(runId: string, principal: Principal): Promise<ScenarioFacts> {
		return factsOf(await this.#work.describe(runId, principal));
	}

	cursor(runId: string, after: number, principal: Principal): Promise<Cursor> {
		return this.#work.cursor(runId, after, principal);
	}

	async textSoFar(runId: string, charsMax: number): Promise<string | undefined> {
		const cursor = await this.#options.bus.cursor({ log: runId }, 0).catch(() => undefined);
		return cursor && textSoFar(cursor, charsMax);
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
		await this.#options.quota.check(admitted.appId, 1);
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
		const { appId, userId, model, timeoutMs: totalMs, spec, source, caller, provider } = admitted;
		const connectorId = "connector" in source ? source.connector.id : undefined;
		const facts = { appId, userId, kind: spec.kind, model, demo: provider.demo, connectorId };
		const { ended } = await this.#runs.start({
			runId,
			kind: "scenario",
			meta: facts,
			countedFor: appId,
			model,
			totalMs,
			firstEventMs: FIRST_PACKET_MS,
			patienceMs: patient ? Number.POSITIVE_INFINITY : ADMIT_MS_MAX,
			charsMax: ANSWER_CHARS_MAX,
			room: () => this.#options.quota.check(appId, 1),
			run: callOf(admitted, provider, audio),
			begin: [...begin, this.#work.audited("started", { ...auditedFacts(runId, facts), caller })],
			settle: (end) => this.#auditEnd(runId, facts, end),
			failure: providerFailure,
		});
		if (connectorId !== undefined) void ended.then((end) => this.#report(connectorId, end));
		return { ended };
	}

	#outcome(runId: string, grew?: () => void): Promise<ScenarioOutcome> {
		return outcomeOf(() => this.#options.bus.cursor({ log: runId }, 0), grew);
	}

	/** Other calls tell themselves how their provider is; one that never answered cannot. */
	#report(connectorId: string, { reason, error }: ModelCallEnd): void {
		if (reason !== "timeout" || !error) return;
		const late = new NexusError("timeout", error.message, { reason: "AI_PROVIDER_TIMEOUT" });
		this.#options.connectors.report(connectorId, { ok: false, error: late });
	}

	#auditEnd(runId: string, facts: AuditedFacts, end: ModelCallEnd): readonly Write[] {
		const operation = end.reason === "completed" || end.reason === "aborted" ? end.reason : "failed";
		return [this.#work.audited(operation, { ...auditedFacts(runId, facts), reason: reasonOfEnd(end) })];
	}
}

type AuditedFacts = Pick<ScenarioFacts, "appId" | "userId" | "model" | "kind" | "connectorId">;

const auditedFacts = (runId: string, { appId, userId, kind, model, connectorId = "inline" }: AuditedFacts) => ({
	appId,
	userId,
	payload: { run_id: runId, kind, model, connector_id: connectorId },
});

const factsOf = ({ meta }: LogInfo): ScenarioFacts => meta as ScenarioFacts;

/** The fields by which requests with one idempotency key are compared. A request's own credential is in nothing that is stored. */
function bodyOf({ spec, model, userId, timeoutMs, source }: AdmittedScenario, audio?: Media): unknown {
	const heard = audio && createHash("sha256").update(audio.data).digest("hex");
	const asked = { call: "scenario", spec, model, userId, timeoutMs, heard };
	if ("connector" in source) return { ...asked, connector: source.connector.id };
	const { providerType, endpoint } = source.inline;
	return { ...asked, inline: { providerType, endpoint } };
}
