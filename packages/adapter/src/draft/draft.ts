/**
 * The messages of one delivery as a pure step: the first text creates a message, more text edits it, a full one is finished and the next begins.
 * Text is taken from the source when a call's turn has come, so waiting edits are one edit; a finished message always gets its complete text.
 */

import { START } from "../markdown/markdown-state.ts";
import { compose, type View } from "../markdown/split.ts";
import { advance, announce, created, edited, failed, found, removed, skipUnseen } from "./draft-outcome.ts";
import {
	type Draft,
	type DraftInput,
	type DraftRules,
	type DraftStep,
	earlyText,
	isEnded,
	isInVain,
	isUnwanted,
	isVisible,
	NO_TOOLS,
	retracted,
	segmentOf,
} from "./draft-state.ts";
import { take } from "./draft-turn.ts";
import { withTool } from "./tool-line.ts";

export function stepDraft(draft: Draft, input: DraftInput, now: number, rules: DraftRules): DraftStep {
	if (draft.over) return { draft, effects: [] };
	const step = react(draft, input, now, rules);
	// A turn that ended in a call is followed by the call's outcome; there is nothing to plan before.
	if (step.draft.over || step.effects.some((effect) => effect.type === "call")) return step;
	const next = plan(step.draft, rules);
	return { draft: next.draft, effects: [...step.effects, ...next.effects] };
}

function react(draft: Draft, input: DraftInput, now: number, rules: DraftRules): DraftStep {
	const only = (next: Draft): DraftStep => ({ draft: next, effects: [] });
	switch (input.type) {
		case "begin":
			return only(draft);
		case "token":
			return only(withToken(draft, input.text));
		case "tool_status":
			return only(rules.tools ? { ...draft, tools: withTool(draft.tools, input) } : draft);
		case "end":
			if (input.final) return only({ ...draft, closed: draft.closed ?? "end", tools: NO_TOOLS });
			return only({
				...draft,
				bounds: [...draft.bounds, draft.from + draft.text.length],
				isFirst: false,
				tools: NO_TOOLS,
			});
		case "error":
			return only(
				withoutDamage({ ...draft, closed: draft.closed ?? "error", tools: NO_TOOLS }, input.damagedFrom, rules),
			);
		case "ack": {
			const { message } = draft;
			if (message.at !== "announced" || message.nonce !== input.nonce) return only(draft);
			return only({ ...draft, message: { ...message, at: "ready", triedAt: undefined } });
		}
		case "due":
			return take(draft, now, rules);
		case "created":
			return created(draft, input.messageId, rules);
		case "edited":
			return edited(draft, rules);
		case "found":
			return found(draft, input.messageId, rules);
		case "failed":
			return failed(draft, input, now, rules);
		default:
			return input satisfies never;
	}
}

function withToken(draft: Draft, text: string): Draft {
	// Nothing comes after the end; the error text that may stand there is not the source.
	if (text === "" || draft.closed !== undefined) return draft;
	const hasVisibleText = draft.hasVisibleText || (draft.bounds.length === 0 && isVisible(text));
	const tools = draft.tools.length > 0 && isVisible(text) ? NO_TOOLS : draft.tools;
	return { ...draft, text: draft.text + text, hasVisibleText, tools };
}

/** Drops text that failed verification, and removes or edits messages that already show it, where the platform can. */
function withoutDamage(draft: Draft, damagedFrom: number | undefined, rules: DraftRules): Draft {
	if (damagedFrom === undefined || draft.isErrorText) return draft;
	const { message } = draft;
	const text = draft.text.slice(0, Math.max(0, damagedFrom - draft.from));
	const stays = text === "" && !isVisible(rules.errorText) && !rules.canRemove;
	if (message.at === "open" && (message.way === "fixed" || !rules.canEdit || stays)) return { ...draft, damagedFrom };
	const bounds = draft.bounds.filter((bound) => bound <= damagedFrom);
	const isPlanned = message.at === "announced" || message.at === "ready";
	const next: Draft = {
		...draft,
		text,
		bounds,
		damagedFrom,
		checked: 0,
		...(isPlanned && message.fixed && { message: { ...message, fixed: undefined } }),
	};
	return { ...next, hasVisibleText: isVisible(segmentOf(next).segment) };
}

/** The next effect, from the state alone. Costs nothing per token. */
function plan(before: Draft, rules: DraftRules): DraftStep {
	// First the message that began in vain, then the text that ended without one.
	if (isInVain(before, rules)) return leave(before, rules);
	let draft = skipUnseen(before);
	if (isUnwanted(draft, rules)) {
		if (draft.closed === "error" && !draft.isErrorText && isVisible(rules.errorText))
			draft = withErrorText(draft, rules);
		else return leave(draft, rules);
	}
	const ended = isEnded(draft);
	const want = (rank: "final" | "create" | "edit" | "preview", paced = true): DraftStep => ({
		draft,
		effects: [{ type: "want", rank, paced }],
	});
	// A turn that found nothing to see waits for more.
	const fresh = ended || draft.text.length > draft.checked || draft.tools !== draft.toolsShown;
	const { message } = draft;
	const early = !draft.hasVisibleText && earlyText(draft, rules) !== "";
	switch (message.at) {
		case "none": {
			const due = fresh || (early && rules.style === "edit");
			return (draft.hasVisibleText || early) && due ? begin(draft, ended, rules) : { draft, effects: [] };
		}
		case "announced":
			return { draft, effects: [] };
		case "ready": {
			if (early && draft.calling === undefined) return want("create");
			// A complete message is decided: it does not wait for text that belongs to the next one.
			if (!draft.hasVisibleText || !(fresh || message.fixed?.view)) return { draft, effects: [] };
			if (ended || showsEarly(rules) || message.fixed) return want(ended ? "final" : "create");
			const checked = full(draft, rules);
			return { draft: checked.draft, effects: checked.view ? want("create").effects : [] };
		}
		case "lost":
			return draft.hasVisibleText || ended ? want("create") : { draft, effects: [] };
		case "open": {
			if (ended || message.complete) return want("final", false);
			// A message of an earlier process may show text, so it is not shortened to its tools.
			const isKnown = draft.text !== "" || (rules.early && message.shown !== "");
			const decorated =
				message.way === "edit" && draft.tools !== draft.toolsShown && isKnown && draft.text.length >= draft.checked;
			return decorated || draft.text.length > draft.checked ? want("edit") : { draft, effects: [] };
		}
		default:
			return message satisfies never;
	}
}

const withErrorText = (draft: Draft, rules: DraftRules): Draft => ({
	...draft,
	isErrorText: true,
	text: rules.errorText,
	hasVisibleText: true,
	markdown: START,
});

/** There is nothing to say: a message that was begun for it goes. One that is being made is waited for. */
function leave(draft: Draft, rules: DraftRules): DraftStep {
	const { message } = draft;
	if (message.at === "none") {
		const want = { type: "want" as const, rank: "final" as const, paced: false };
		return retracted(draft, rules) ? { draft, effects: [want] } : completed(draft);
	}
	if (draft.calling !== undefined) return { draft, effects: [] };
	const isMade = message.at === "open" || message.at === "lost" || (message.at === "ready" && message.doubtful);
	if (isMade) return { draft, effects: [{ type: "want", rank: "final", paced: false }] };
	const gone = removed(draft);
	const next = plan(gone.draft, rules);
	return { draft: next.draft, effects: [...gone.effects, ...next.effects] };
}

function completed(draft: Draft): DraftStep {
	const status = { type: "delivery_complete" as const, messageIds: [...draft.ids] };
	return { draft: { ...draft, over: true }, effects: [{ type: "say", status }, { type: "over" }] };
}

/** How much more text makes it worth looking whether a message is full, for styles that show nothing before. */
const CHECK_CHARS = 256;

/** No message yet, and something to say. */
function begin(draft: Draft, ended: boolean, rules: DraftRules): DraftStep {
	if (showsEarly(rules)) return announce(draft, rules);
	if (rules.style === "preview" && draft.previews && !ended) {
		const paced = !rules.toolsApart || draft.tools === draft.toolsShown;
		return { draft, effects: [{ type: "want", rank: "preview", paced }] };
	}
	const checked = full(draft, rules);
	const { view } = checked;
	if (!view) return { draft: checked.draft, effects: [] };
	if (view.markdown.trim() === "") return plan(advance(draft, view.length, view.next), rules);
	return announce(draft, rules, view);
}

/** The other styles create a message with its complete text only. */
const showsEarly = ({ style }: DraftRules): boolean => style === "edit" || style === "append";

/** The complete text of the next message, if it is there. */
function full(draft: Draft, rules: DraftRules): { draft: Draft; view?: View } {
	const { segment, ended } = segmentOf(draft);
	if (!ended && segment.length < draft.checked + CHECK_CHARS) return { draft };
	const view = compose(draft.markdown, segment, ended, rules);
	return view.done ? { draft, view } : { draft: { ...draft, checked: draft.text.length } };
}
