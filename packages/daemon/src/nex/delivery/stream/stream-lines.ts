/** Converts source events to the lines of a `stream` process; adjacent tokens of a batch become one line. */

import type { DeliveryFields, StreamLine } from "@nexus-stream/adapter/host";
import type { SourceEvent } from "../source.ts";

export interface LineRules {
	/** Included in every line; undefined for adapters that know only the basic fields. */
	fields: DeliveryFields | undefined;
	reasoning: boolean;
	parts: boolean;
	tokenCharsMax: number;
}

/** The lines of a batch as JSON. Without the stream_start, which has more fields than its event. */
export function createLines(rules: LineRules): (events: readonly SourceEvent[]) => string[] {
	const close = closer(rules.fields);
	const tokenLine = (text: string, offset: number) => `{"type":"token","text":${JSON.stringify(text)}${close(offset)}`;
	return (events) => {
		const lines: string[] = [];
		let text = "";
		let offset = 0;
		for (const each of events) {
			if (each.event.type === "token") {
				if (text !== "" && text.length + each.event.text.length > rules.tokenCharsMax) {
					lines.push(tokenLine(text, offset));
					text = "";
				}
				text += each.event.text;
				offset = each.offset;
				continue;
			}
			const line = lineOf(each, rules);
			if (!line) continue;
			if (text !== "") lines.push(tokenLine(text, offset));
			text = "";
			lines.push(JSON.stringify(line).slice(0, -1) + close(each.offset));
		}
		if (text !== "") lines.push(tokenLine(text, offset));
		return lines;
	};
}

/** The end of every line's JSON: the delivery's fields and the log offset. */
function closer(fields: DeliveryFields | undefined): (offset: number) => string {
	if (!fields) return () => "}";
	const names = JSON.stringify({ ...fields, offset: 0 }).slice(1, -2);
	return (offset) => `,${names}${offset}}`;
}

function lineOf({ event, reason, facts, damagedFrom }: SourceEvent, rules: LineRules): StreamLine | undefined {
	switch (event.type) {
		case "stream_start":
		case "token":
			return undefined;
		case "reasoning":
			return rules.reasoning ? { type: "reasoning", text: event.text } : undefined;
		case "tool_status": {
			// The basic fields have no `progress`; arguments and results are not shown in a chat.
			if (!rules.fields && event.status === "progress") return undefined;
			const { type, toolName, toolCallId, status, summary } = event;
			return { type, toolName, toolCallId, status, summary };
		}
		case "stream_end": {
			const { type, runId, final } = event;
			const ended = { type, runId, final };
			return rules.fields ? { ...ended, ...facts, reason } : ended;
		}
		case "stream_error":
			return rules.fields && damagedFrom !== undefined ? { ...event, damagedFrom } : event;
		case "part":
			return rules.parts && event.modality !== "reasoning" ? event : undefined;
		default:
			return event satisfies never;
	}
}
