/** What runs did since the start, for `/metrics`: tools by name, model calls, attempts and approvals, with labels that are bounded. */

import type { RunObserver } from "../broker/broker.ts";
import type { EngineEvent } from "../engine/engine.ts";

/** A model may call a tool by any name: the first ones have a label of their own, the rest share one. */
const NAMES_MAX = 100;
const NAME = /^[\w-]{1,64}$/;
const OTHER = "other";

type ToolEvent = Extract<EngineEvent, { type: "tool" }>;

export interface ToolCount {
	completed: number;
	failed: number;
	/** Of those that had started. */
	ms: number;
}

export class RunCounts implements RunObserver {
	readonly tools = new Map<string, ToolCount>();
	readonly modelCalls = { completed: 0, failed: 0 };
	modelMs = 0;
	attempts = 0;
	reminders = 0;
	readonly approvals = { approved: 0, denied: 0, expired: 0, withdrawn: 0 };
	/** By run and call. */
	readonly #startedAt = new Map<string, Map<string, number>>();

	took(runId: string, event: EngineEvent, at: number): void {
		if (event.type === "tool") this.#tool(runId, event, at);
		else if (event.type === "log") this.#log(event.entry);
	}

	settled({ runId }: { runId: string }): void {
		this.#startedAt.delete(runId);
	}

	#tool(runId: string, { callId, name, status, asking }: ToolEvent, at: number): void {
		if (asking?.kind === "approval" && asking.state in this.approvals)
			this.approvals[asking.state as keyof RunCounts["approvals"]]++;
		if (status === "progress") return;
		const calls = this.#startedAt.get(runId) ?? new Map<string, number>();
		this.#startedAt.set(runId, calls);
		if (status === "started") return void calls.set(callId, at);
		const count = this.#count(name);
		count[status]++;
		count.ms += Math.max(0, at - (calls.get(callId) ?? at));
		calls.delete(callId);
	}

	#log({ kind, data }: Extract<EngineEvent, { type: "log" }>["entry"]): void {
		if (kind === "attempt") this.attempts++;
		else if (kind === "reminder") this.reminders++;
		else if (kind === "model") {
			this.modelCalls[data?.failed === true ? "failed" : "completed"]++;
			if (typeof data?.ms === "number" && data.ms >= 0) this.modelMs += data.ms;
		}
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
