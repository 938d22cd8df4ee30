/** One workflow under way: takes what happens as inputs of the step, commits what it decides in one unit, then does what it commands. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { clip } from "../../../std/clip.ts";
import type { Write } from "../../../std/write.ts";
import type { DurableLog } from "../../kit/durable-work.ts";
import type { Principal } from "../../kit/principal.ts";
import { isRetryable, LEAVE, type PerformDeps, perform } from "../nodes/perform.ts";
import { compute, scopeOf, weightOf } from "../nodes/transform.ts";
import type { Plan } from "../plan.ts";
import { outputsTooLarge, type WorkflowLimits } from "../port.ts";
import { workflowWrites } from "../rows.ts";
import { recordOf } from "./events.ts";
import { doneBefore, isOver, nextTickAt, type WorkflowRun } from "./run-state.ts";
import { type NodeOutput, progressOf, storedNode, type WorkflowHead } from "./status.ts";
import { type NodeCommand, type NodeReport, step, type WorkflowInput } from "./step.ts";

export interface ExecutionDeps {
	clock: Clock;
	log: Log;
	limits: WorkflowLimits;
	perform: PerformDeps;
	/** The audit entry that commits with the end. */
	ended(head: WorkflowHead, run: WorkflowRun, canceledBy?: string): Write;
}

export interface Begun {
	head: WorkflowHead;
	principal: Principal;
	plan: Plan;
	run: WorkflowRun;
	outputs: ReadonlyMap<string, NodeOutput>;
	log: DurableLog;
}

export class WorkflowExecution {
	readonly head: WorkflowHead;
	readonly plan: Plan;
	readonly #deps: ExecutionDeps;
	readonly #principal: Principal;
	readonly #outputs: Map<string, NodeOutput>;
	readonly #log: DurableLog;
	/** As it is durable. */
	#run: WorkflowRun;
	/** The state in the newest record; undefined before the first one that this daemon writes. */
	#recordedRun: WorkflowRun | undefined;
	#inputs: WorkflowInput[] = [];
	#isTaking = false;
	#taken: Promise<void> = Promise.resolve();
	#weight = 0;
	/** Starts nothing any more. */
	#isClosing = false;
	#hasLeft = false;
	#canceledBy: string | undefined;
	readonly #attempts = new Map<string, { controller: AbortController; done: Promise<void> }>();
	#cancelTick = () => {};
	readonly #over = Promise.withResolvers<void>();

	constructor(deps: ExecutionDeps, { head, principal, plan, run, outputs, log }: Begun) {
		this.#deps = deps;
		this.head = head;
		this.plan = plan;
		this.#principal = principal;
		this.#run = run;
		this.#outputs = new Map(outputs);
		this.#log = log;
		for (const output of outputs.values()) this.#weight += weightOf(output);
	}

	get run(): WorkflowRun {
		return this.#run;
	}

	/** Resolves when it has ended, or was left. */
	get over(): Promise<void> {
		return this.#over.promise;
	}

	give(input: WorkflowInput): void {
		if (this.#hasLeft) return;
		this.#inputs.push(input);
		if (!this.#isTaking) this.#taken = this.#take();
	}

	/** Records the first caller that cancels. */
	cancel(reason: string, caller: string): void {
		this.#canceledBy ??= caller;
		this.give({ type: "cancel", reason });
	}

	/** Starts no further node; resolves when those under way are over. */
	async close(): Promise<void> {
		this.#isClosing = true;
		this.give({ type: "stopping" });
		while (!this.#hasLeft && (this.#attempts.size > 0 || this.#isTaking))
			await Promise.race([
				this.over,
				Promise.all([this.#taken, ...[...this.#attempts.values()].map(({ done }) => done)]),
			]);
	}

	/** Stops working on it without changing it: the next start resumes it. */
	leave(): void {
		this.#hasLeft = true;
		this.#cancelTick();
		for (const { controller } of this.#attempts.values()) controller.abort(LEAVE);
		this.#over.resolve();
	}

	/** Commits the inputs that came meanwhile together. */
	async #take(): Promise<void> {
		this.#isTaking = true;
		try {
			// A caller that gives several inputs at once gets one commit for them.
			await Promise.resolve();
			while (this.#inputs.length > 0 && !this.#hasLeft) await this.#turn();
			this.#setTick();
		} catch (cause) {
			this.#deps.log.error({ err: cause, workflow: this.head.id }, "a workflow stopped; the next start resumes it");
			this.leave();
		} finally {
			this.#isTaking = false;
		}
	}

	async #turn(): Promise<void> {
		const { clock } = this.#deps;
		const before = this.#run;
		let run = before;
		const records: string[] = [];
		const commands: NodeCommand[] = [];
		// A node that computes at once gives the next input before anything is committed.
		for (let input = this.#inputs.shift(); input; input = this.#inputs.shift()) {
			const now = clock.now();
			const next = step(this.plan, run, input, now, this.#limitsNow());
			run = next.run;
			for (const event of next.events) {
				const offset = this.#log.writer.offset + records.length + 1;
				records.push(recordOf(this.head, this.plan, event, { now, offset, before: this.#recordedRun }));
				this.#recordedRun = event.run;
			}
			for (const command of next.commands) if (!this.#computes(run, command)) commands.push(command);
		}
		if (records.length > 0 || run !== before) await this.#commit(before, run, records);
		this.#run = run;
		for (const command of commands) this.#do(command);
		if (isOver(run)) this.leave();
	}

	/** A daemon that stops lets what is under way end, and begins nothing. */
	#limitsNow() {
		return this.#isClosing ? { ...this.#deps.limits, nodesRunningMax: 0 } : this.#deps.limits;
	}

	#computes(run: WorkflowRun, command: NodeCommand): boolean {
		if (command.type !== "perform") return false;
		const { node: id, attempt } = command;
		const node = this.plan.node(id);
		const done = doneBefore(this.plan, run, node);
		let report: NodeReport | undefined;
		try {
			const computed = compute(node, scopeOf(this.plan, node, done, this.#outputs), done);
			if (!computed) return false;
			this.#keep(id, computed.output);
			report = { type: "completed", taken: computed.taken };
		} catch (cause) {
			report = failed(cause, this.#deps.limits);
		}
		this.#inputs.unshift({ type: "node", node: id, attempt, report });
		return true;
	}

	/** Throws when all outputs together become too large. */
	#keep(id: string, output: NodeOutput): void {
		const earlier = this.#outputs.get(id);
		const weight = weightOf(output) - (earlier ? weightOf(earlier) : 0);
		if (this.#weight + weight > this.#deps.limits.outputsBytesMax) throw outputsTooLarge(this.#deps.limits);
		this.#weight += weight;
		this.#outputs.set(id, output);
	}

	async #commit(before: WorkflowRun, run: WorkflowRun, records: readonly string[]): Promise<void> {
		const { id } = this.head;
		const changed = [...run.nodes].filter(([node, state]) => before.nodes.get(node) !== state);
		const nodes = changed.map(([node, state]) =>
			storedNode(node, state, state.state === "completed" ? this.#outputs.get(node) : undefined),
		);
		const writes = [workflowWrites.advance(id, progressOf(run), nodes)];
		const isLast = isOver(run);
		if (isLast) writes.push(this.#deps.ended(this.head, run, run.state === "canceled" ? this.#canceledBy : undefined));
		await this.#log.save(records, writes, isLast);
	}

	#do(command: NodeCommand): void {
		const { node, attempt } = command;
		const key = `${node}/${attempt}`;
		if (command.type === "stop") {
			this.#attempts.get(key)?.controller.abort(new NexusError("aborted", "stopped"));
			return;
		}
		const controller = new AbortController();
		const report = (what: NodeReport) => this.give({ type: "node", node, attempt, report: what });
		const done = this.#perform(command, controller.signal, report)
			.catch((cause: unknown) => failed(cause, this.#deps.limits))
			.then((what) => {
				this.#attempts.delete(key);
				// While the daemon stops, what acts outside may fail for that alone: what became of it is looked up at the next start.
				if (!this.#isClosing || what.type !== "failed" || !this.plan.node(node).external) report(what);
			});
		this.#attempts.set(key, { controller, done });
	}

	async #perform(
		{ node: id, again }: Extract<NodeCommand, { type: "perform" }>,
		signal: AbortSignal,
		report: (report: NodeReport) => void,
	): Promise<NodeReport> {
		const node = this.plan.node(id);
		const done = doneBefore(this.plan, this.#run, node);
		const scope = scopeOf(this.plan, node, done, this.#outputs);
		const output = await perform(this.#deps.perform, {
			workflowId: this.head.id,
			appId: this.head.appId,
			userId: this.head.userId,
			principal: this.#principal,
			node,
			scope,
			signal,
			report,
			run: this.#run.nodes.get(id)!,
			again: again === true,
		});
		// An attempt that was stopped meanwhile does not count any more, and neither does its output.
		if (!signal.aborted) this.#keep(id, output);
		return { type: "completed" };
	}

	#setTick(): void {
		this.#cancelTick();
		const { clock } = this.#deps;
		const at = this.#hasLeft ? undefined : nextTickAt(this.#run, this.#limitsNow().nodesRunningMax);
		this.#cancelTick =
			at === undefined
				? () => {}
				: clock.after(Math.max(0, at - clock.now()), () => this.give({ type: "tick" }), "due");
	}
}

/** A value that cannot be computed is a fault of the workflow, not of a request. */
function failed(cause: unknown, { errorCharsMax }: WorkflowLimits): NodeReport {
	const error = toNexusError(cause);
	const { code, reason = code === "invalid" ? "WORKFLOW_INVALID" : undefined } = error;
	const message = clip(error.message, errorCharsMax);
	return { type: "failed", error: { code, message, reason }, retryable: isRetryable(error) };
}
