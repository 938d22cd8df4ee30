/** Questions as blocks with buttons, and who pressed what of them. */

import { buttonData, readButton } from "@nexus-stream/adapter/platform/buttons";
import type { InboundChoice, Question } from "@nexus-stream/adapter/port";
import type { KnownBlock } from "@slack/web-api";

const SECTION_CHARS_MAX = 3000;

/** A text as blocks, in as many as it needs: without them an update would leave a question's buttons. */
export function sectionsOf(mrkdwn: string): KnownBlock[] {
	const sections: KnownBlock[] = [];
	for (let at = 0; at < mrkdwn.length; ) {
		let end = Math.min(at + SECTION_CHARS_MAX, mrkdwn.length);
		const last = mrkdwn.charCodeAt(end - 1);
		if (end < mrkdwn.length && last >= 0xd800 && last <= 0xdbff) end--;
		sections.push({ type: "section", text: { type: "mrkdwn", text: mrkdwn.slice(at, end), verbatim: true } });
		at = end;
	}
	return sections;
}

export function questionBlocks(mrkdwn: string, { id, choices }: Question): KnownBlock[] {
	const elements = choices.map(({ id: choice, label, danger }) => ({
		type: "button" as const,
		text: { type: "plain_text" as const, text: label },
		action_id: `choice_${choice}`,
		value: buttonData(id, choice),
		style: danger ? ("danger" as const) : undefined,
	}));
	return [...sectionsOf(mrkdwn), { type: "actions", elements }];
}

interface BlockActions {
	type?: unknown;
	user?: { id?: unknown; username?: unknown; name?: unknown };
	channel?: { id?: unknown };
	message?: { ts?: unknown; thread_ts?: unknown };
	actions?: readonly { value?: unknown; action_ts?: unknown }[];
}

export interface SlackPress {
	choice: InboundChoice;
	/** Where a word to whoever pressed goes. */
	place: { channel: string; user: string; thread_ts?: string };
}

/** `payload` is one of interactivity. Undefined: no button of a question. */
export function readPress(payload: unknown): SlackPress | undefined {
	const { type, user, channel, message, actions } = (payload ?? {}) as BlockActions;
	const [action] = Array.isArray(actions) ? (actions as NonNullable<BlockActions["actions"]>) : [];
	const button = type === "block_actions" ? readButton(action?.value) : undefined;
	const [who, where, ts] = [text(user?.id), text(channel?.id), text(message?.ts)];
	if (!button || !who || !where || !ts) return undefined;
	const name = text(user?.name) || text(user?.username);
	const thread = text(message?.thread_ts);
	return {
		choice: {
			eventId: `press:${where}:${ts}:${who}:${text(action?.action_ts)}`,
			...button,
			messageId: ts,
			from: { id: who, name: name || undefined },
			chat: { id: where, type: where.startsWith("D") ? "direct" : "group" },
		},
		place: { channel: where, user: who, thread_ts: thread || undefined },
	};
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
