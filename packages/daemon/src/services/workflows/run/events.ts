/**
 * A workflow's events as they are stored: every so often one with the whole workflow, and between them only what changed. Readers get every
 * event with the whole workflow; a hundred nodes would otherwise be stored again for each step of each of them.
 */

import { NexusError } from "@nexus-stream/protocol";
import { Batch, type Cursor } from "../../../bus/bus.ts";
import type { Plan } from "../plan.ts";
import type { WorkflowEventJson, WorkflowJson } from "../port.ts";
import type { WorkflowRun } from "./run-state.ts";
import { changeOf, type WorkflowChange, type WorkflowHead, workflowJson } from "./status.ts";
import type { WorkflowEvent } from "./step.ts";

/** The records at these offsets are whole: 1, 257, 513 … */
const WHOLE_EVERY = 256;
/** About how much a reader gets at a time: a stored page may expand to hundreds of times its size. */
const EXPANDED_CHARS_MAX = 256 * 1024;

type StoredEvent = WorkflowEventJson | (Omit<WorkflowEventJson, "workflow"> & { change: WorkflowChange });

/** `before` is the state in the previous record; undefined where this record has to be whole. */
export function recordOf(
	head: WorkflowHead,
	plan: Plan,
	{ type, node, run }: WorkflowEvent,
	{ now, offset, before }: { now: number; offset: number; before?: WorkflowRun | undefined },
): string {
	const event = { type, at: now, node_id: node };
	const isWhole = before === undefined || offset % WHOLE_EVERY === 1;
	return JSON.stringify(
		(isWhole
			? { ...event, workflow: workflowJson(head, plan, run) }
			: { ...event, change: changeOf(run, before) }) satisfies StoredEvent,
	);
}

type Open = (after: number) => Promise<Cursor>;

/** Reads the events strictly after an offset, each with the whole workflow. */
export async function eventCursor(open: Open, after: number): Promise<Cursor> {
	return new EventCursor(await open(after - (after % WHOLE_EVERY)), after);
}

class EventCursor implements Cursor {
	offset: number;
	readonly #stored: Cursor;
	#batch: Batch | undefined;
	#workflow: WorkflowJson | undefined;

	constructor(stored: Cursor, after: number) {
		this.#stored = stored;
		this.offset = after;
	}

	get ended(): boolean {
		return this.#batch === undefined && this.#stored.ended;
	}

	next(): Batch | undefined | Promise<Batch | undefined> {
		for (;;) {
			if (this.#batch) {
				const expanded = this.#expand(this.#batch);
				if (expanded) return expanded;
			}
			const found = this.#stored.next();
			if (found instanceof Promise)
				return found.then((batch) => {
					this.#batch = batch;
					return batch && this.next();
				});
			if (!found) return undefined;
			this.#batch = found;
		}
	}

	/** Undefined when all of it lies before what is read. */
	#expand({ first, last, records }: Batch): Batch | undefined {
		const texts: string[] = [];
		let chars = 0;
		let at = Math.max(first, this.#at);
		for (; at <= last && chars < EXPANDED_CHARS_MAX; at++) {
			const text = this.#whole(records[at - first]!);
			if (at <= this.offset) continue;
			texts.push(text);
			chars += text.length;
		}
		this.#at = at;
		if (at > last) this.#batch = undefined;
		if (texts.length === 0) return undefined;
		const begins = this.offset + 1;
		this.offset = at - 1;
		return Batch.of(begins, texts);
	}

	/** Offset of the next stored record to be read. */
	#at = 0;

	#whole(record: string): string {
		const event = JSON.parse(record) as StoredEvent;
		if ("workflow" in event) {
			this.#workflow = event.workflow;
			return record;
		}
		const { change, ...told } = event;
		const changed = new Map(change.nodes.map((node) => [node.node_id, node]));
		if (!this.#workflow)
			throw new NexusError("data_loss", "an event tells of a change, and what it changes is not there");
		const { workflow_id, app_id, user_id, name, created_at, nodes } = this.#workflow;
		this.#workflow = {
			workflow_id,
			app_id,
			user_id,
			name,
			...change.workflow,
			created_at,
			nodes: nodes.map((node) => {
				const { kind, depends_on } = node;
				const next = changed.get(node.node_id);
				return next ? { ...next, kind, depends_on } : node;
			}),
		};
		return JSON.stringify({ ...told, workflow: this.#workflow } satisfies WorkflowEventJson);
	}

	check(): void | Promise<void> {
		return this.#stored.check();
	}

	onWake(listener: Parameters<Cursor["onWake"]>[0]): void {
		this.#stored.onWake(listener);
	}

	close(): void {
		this.#stored.close();
	}
}
