/** The deliveries of one `stream` process, many at once: gives every line to the delivery it belongs to. */

import { type StartLine, StreamedDelivery } from "../draft/delivery.ts";
import type { DraftInput } from "../draft/draft-state.ts";
import type { DeliveryFields, StreamLine, Target } from "../port.ts";
import { type AdapterContext, createTyping } from "./context.ts";

export function createDeliveries(context: AdapterContext) {
	const open = new Map<string, StreamedDelivery>();
	const waiting: (() => void)[] = [];
	const typing = createTyping(context);
	let latest = "";
	// Lines without a name belong to the delivery that began last: the basic form, one at a time.
	const keyOf = (line: DeliveryFields) => line.delivery ?? line.runId ?? latest;

	function begin(line: StartLine): void {
		if (typeof (line.target as Target | undefined)?.to !== "string") throw new Error("stream_start without target.to");
		const key = keyOf(line);
		latest = key;
		// The daemon resumes a delivery that it considers lost: the newer start replaces the older one.
		open.get(key)?.drop();
		const delivery: StreamedDelivery = new StreamedDelivery(context, line, key, () => {
			if (open.get(key) === delivery) open.delete(key);
			if (open.size === 0) for (const resolve of waiting.splice(0)) resolve();
		});
		open.set(key, delivery);
	}

	/** Resolves when nothing is under way. */
	async function idle(): Promise<void> {
		if (open.size > 0) await new Promise<void>((resolve) => waiting.push(resolve));
		await context.gate.quiet();
	}

	return {
		idle,
		/** Lines of unknown types are ignored. */
		accept(line: StreamLine): void {
			if (line.type === "typing") typing(line);
			else if (line.type === "stream_start") begin(line);
			else {
				const input = inputOf(line);
				if (input) open.get(keyOf(line))?.take(input, line);
			}
		},
		/** No more lines come: deliveries that have their end are finished, the others are left for another process to resume. */
		stop(): Promise<void> {
			for (const delivery of [...open.values()]) delivery.lastLine();
			return idle();
		},
	};
}

function inputOf(line: Exclude<StreamLine, { type: "stream_start" | "typing" }>): DraftInput | undefined {
	switch (line.type) {
		case "token":
			if (typeof line.text !== "string") throw new Error("token without text");
			return { type: "token", text: line.text };
		case "tool_status":
			return line;
		case "stream_end":
			return { type: "end", final: line.final !== false };
		case "stream_error":
			return { type: "error", damagedFrom: typeof line.damagedFrom === "number" ? line.damagedFrom : undefined };
		case "ack":
			return { type: "ack", nonce: line.nonce };
		// Reasoning and parts are for adapters that show them.
		default:
			return undefined;
	}
}
