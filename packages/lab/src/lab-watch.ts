/** The visible state of one platform of the lab since the last reset: messages with their changes, draft, typing, and calls. */

import type { FakeCall } from "./fake.ts";
import type { Bubble, Place } from "./lab-places.ts";

const CALLS_MAX = 60;

const TYPING = /typing|chataction|setstatus/i;
/** Calls whose answer the adapter waits for: a fault in any other, a preview or a typing sign, would stay invisible. */
export const AWAITED = /^(?!EVENT stream)(?!.*(?:typing|chataction|setstatus))/i;

interface Shown extends Bubble {
	id: string;
	created_at: number;
	updated_at: number;
	/** How often it was seen to change. */
	edits: number;
}

export interface Watch {
	/** Looks; what changes between two looks counts as one change. */
	sample(): void;
	reset(): void;
	state(): object;
}

export function watch(place: Place, now: () => number): Watch {
	const { fake } = place;
	// A fake's calls count from its own start.
	const { begun } = fake;
	let messages: Shown[] = [];
	let draft: Shown | undefined;
	let messagesBefore = 0;
	let callsBefore = 0;

	const sample = () => {
		const at = now();
		place
			.bubbles()
			.slice(messagesBefore)
			.forEach((bubble, n) => {
				const known = messages[n];
				if (!known) messages.push(fresh(String(messagesBefore + n + 1), bubble, at));
				else messages[n] = changed(known, bubble, at);
			});
		const preview = place.draft?.();
		if (preview === undefined) draft = undefined;
		else {
			const bubble: Bubble = { text: preview, style: "plain" };
			draft = draft ? changed(draft, bubble, at) : fresh("draft", bubble, at);
		}
	};

	const isTyping = (calls: readonly FakeCall[]): boolean => {
		const last = calls.findLast(isTypingCall);
		if (!last || place.typingMs === undefined || isEndOfTyping(last)) return false;
		const at = begun + last.at;
		return now() - at < place.typingMs && at >= (messages.at(-1)?.created_at ?? 0) && draft === undefined;
	};

	return {
		sample,
		reset() {
			messagesBefore = place.bubbles().length;
			callsBefore = fake.calls.length;
			messages = [];
		},
		state() {
			sample();
			const calls = fake.calls.slice(callsBefore);
			return {
				messages,
				draft,
				typing: isTyping(calls),
				calls: calls
					.slice(-CALLS_MAX)
					.map(({ name, at, status, ms, fault }) => ({ at: begun + at, call: name, status, ms, fault })),
				calls_total: calls.length,
			};
		},
	};
}

const fresh = (id: string, bubble: Bubble, at: number): Shown => ({
	...bubble,
	id,
	created_at: at,
	updated_at: at,
	edits: 0,
});

function changed(known: Shown, bubble: Bubble, at: number): Shown {
	const { buttons: _buttons, ...kept } = known;
	if (known.text === bubble.text) return { ...kept, ...bubble };
	return { ...kept, ...bubble, updated_at: at, edits: known.edits + 1 };
}

const isTypingCall = ({ name }: FakeCall): boolean => TYPING.test(name);

/** Some platforms get an explicit end: Signal `stop`, Slack an empty status. */
function isEndOfTyping({ body }: FakeCall): boolean {
	const { stop, status } = (body ?? {}) as { stop?: unknown; status?: unknown };
	return stop === true || status === "";
}
