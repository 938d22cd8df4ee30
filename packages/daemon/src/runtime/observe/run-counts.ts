/** Counts of the runs of any engine since the start, for `/metrics`: tools by name and approvals, with bounded labels. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";
import type { RunObserver } from "../../broker/broker.ts";

/** A model may call a tool by any name: the first ones have a label of their own, the rest share one. */
const NAMES_MAX = 100;
const NAME = /^[\w-]{1,64}$/;
const OTHER = "other";

type CountedToolEvent = Extract<EngineEvent, { type: "tool" }>;

export interface ToolCount {
	completed: number;
	failed: number;
	/** Counts tools that had started. */
	ms: number;
}

interface Underway {
	/** By call. */
	startedAt: Map<string, number>;
	/** Approvals that are counted: what became of one may be said more than once. */
	decided: Set<string>;
}

/** Bounded: a run that never settles, because the store gave it up, must not stay in memory. */
const RUNS_MAX = 10_000;

export class RunCounts implements RunObserver {
	readonly tools = new Map<string, ToolCount>();
	readonly approvals = { approved: 0, denied: 0, expired: 0, withdrawn: 0 };
	readonly #runs = new Map<string, Underway>();

	took(runId: string, event: EngineEvent, at: number): void {
		if (event.type === "tool") this.#tool(runId, event, at);
	}

	settled({ runId }: { runId: string }): void {
		this.#runs.delete(runId);
	}

	#tool(runId: string, { callId, name, status, asking: approval }: CountedToolEvent, at: number): void {
		const { startedAt, decided } = this.#runs.get(runId) ?? this.#underway(runId);
		if (approval?.kind === "approval" && approval.state in this.approvals && !decided.has(approval.id)) {
			decided.add(approval.id);
			this.approvals[approval.state as keyof RunCounts["approvals"]]++;
		}
		if (status === "progress") return;
		if (status === "started") return void startedAt.set(callId, at);
		const count = this.#count(name);
		count[status]++;
		count.ms += Math.max(0, at - (startedAt.get(callId) ?? at));
		startedAt.delete(callId);
	}

	#underway(runId: string): Underway {
		const oldest = this.#runs.size >= RUNS_MAX ? this.#runs.keys().next().value : undefined;
		if (oldest !== undefined) this.#runs.delete(oldest);
		const fresh = { startedAt: new Map<string, number>(), decided: new Set<string>() };
		this.#runs.set(runId, fresh);
		return fresh;
	}

	#count(name: string): ToolCount {
		const label = this.tools.has(name) || (NAME.test(name) && this.tools.size < NAMES_MAX) ? name : OTHER;
		const found = this.tools.get(label);
		if (found) return found;
		const fresh = { completed: 0, failed: 0, ms: 0 };
		this.tools.set(label, fresh);
		return fresh;
	}
}
