/** Events of agents and of memory, as they are kept: one line of JSON with ids and states. One of an agent has 1 KB at most (Z22). */

import type { Reason } from "@nexus-stream/protocol";
import { clipBytes } from "../../std/clip.ts";

/** An event as it is stored and as readers get it. */
export interface AgentEvent {
	event_type: "started" | "message" | "tool" | "approval" | "settled";
	/** In milliseconds since the epoch. */
	at: number;
	session: string;
	run_id?: string;
	agent?: string;
	/** The id of a message's event, of a tool's call or of an approval; absent: all open approvals. */
	id?: string;
	tool?: string;
	/** Such as `started`, `completed`, `pending` or `failed`. */
	state?: string;
	reason_code?: Reason;
}

export interface MemoryEvent {
	event_type: "retained" | "forgotten";
	at: number;
	memory_id: string;
	bank: string;
	run_id?: string;
	agent?: string;
}

/** Names come from models and people. The labels of sessions and the ids of runs are short by themselves. */
const NAME_BYTES_MAX = 64;
const ID_BYTES_MAX = 128;

export const agentText = ({ agent, id, tool, ...event }: AgentEvent): string =>
	JSON.stringify({
		...event,
		agent: agent && clipped(agent, NAME_BYTES_MAX),
		id: id && clipped(id, ID_BYTES_MAX),
		tool: tool && clipped(tool, NAME_BYTES_MAX),
	});

export const memoryText = ({ agent, ...event }: MemoryEvent): string =>
	JSON.stringify({ ...event, agent: agent && clipped(agent, NAME_BYTES_MAX) });

const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/gu;
/** Nearly all of them. */
const PLAIN = /^[ -~]*$/;

/** Names and ids come from models, platforms and callers: records hold them on one line, and at most so many bytes of UTF-8, on a character's border. */
export function clipped(text: string, bytesMax: number): string {
	if (text.length <= bytesMax && PLAIN.test(text)) return text;
	return clipBytes(text.replaceAll(CONTROL, "\uFFFD"), bytesMax);
}
