/** What an agent reads: the session and the run, its own words as its own, those of the other agents as quotes. */

import type { Message, UserMessage } from "@earendil-works/pi-ai";
import type { EngineMessage, EngineRequest } from "@nexus-stream/protocol/engine";
import { type Signer, toPiContext } from "../pi/pi.ts";
import type { AgentNote } from "./checkpoint.ts";

/** The session's turns, with the newest message last. */
export function sessionFor(agent: string, request: EngineRequest, now: number, signer: Signer | undefined): Message[] {
	const messages = request.messages.map((message) => (isForeign(message, agent) ? quoted(message) : message));
	const { history, prompt } = toPiContext({ ...request, messages }, now, signer);
	return [...history, prompt];
}

/** A message without a name is from a time when there was one agent. */
const isForeign = ({ role, agent }: EngineMessage, reader: string): boolean =>
	role === "assistant" && agent !== undefined && agent !== reader;

/** Its tools and its reasoning stay its own: a model must not take another's calls for its own. */
const quoted = ({ agent, text }: EngineMessage): EngineMessage => ({
	role: "user",
	text: `[${agent}] ${text || "(no text)"}`,
});

/** What the others handed on since the agent last read; its own hand-overs are in its own messages. */
export const notesFor = (agent: string, notes: readonly AgentNote[], now: number): UserMessage[] =>
	notes.filter((note) => note.agent !== agent).map((note) => userWords(`[${note.agent}] ${note.text}`, now));

export const userWords = (content: string, timestamp: number): UserMessage => ({ role: "user", content, timestamp });
