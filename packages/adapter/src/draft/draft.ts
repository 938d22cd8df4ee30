/** The messages of one delivery as a pure step. Text is taken when a call's turn has come, so waiting edits are one; a finished message has its complete text. */

import { START } from "../markdown/markdown-state.ts";
import { compose, type View } from "../markdown/split.ts";
import { advance, announce, created, edited, failed, found, over, removed, skipUnseen } from "./draft-outcome.ts";
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
	segmentOf,
	step,
	untrueMessage,
	want,
} from "./draft-state.ts";
import { take } from "./draft-turn.ts";
import { withTool } from "./tool-line.ts";

export function stepDraft(draft: Draft, input: DraftInput, now: number, rules: DraftRules): DraftStep {
	if (draft.over) return step(draft);
	const reaction = react(draft, input, now, rules);
	// A turn that ended in a call is followed by the call's outcome; there is nothing to plan before.
	const isCalling = reaction.effects.some((effect) => effect.type === "call");
	return reaction.draft.over || isCalling ? reaction : planned(reaction, rules);
}

/** A step and the next effect that its state asks for. */
function planned({ draft, effects }: DraftStep, rules: DraftRules): DraftStep {
	const next = plan(draft, rules);
	return step(next.draft, ...effects, ...next.effects);
}

function react(draft: Draft, input: DraftInput, now: number, rules: DraftRules): DraftStep {
	switch (input.type) {
		case "begin":
			return step(draft);
		case "token":
			return step(withToken(draft, input.text));
		case "tool_status":
			return step(rules.tools ? { ...draft, tools: withTool(draft.tools, input) } : draft);
		case "end":
			if (input.final) return step({ ...draft, closed: draft.closed ?? "end", tools: NO_TOOLS });
			return step({ ...draft, bounds: [...draft.bounds, endOf(draft)], isFirst: false, tools: NO_TOOLS });
		case "error": {
			const closed: Draft = { ...draft, closed: draft.closed ?? "error", tools: NO_TOOLS };
			return step(withoutDamage(closed, input.damagedFrom, rules));
		}
		case "ack": {
			const { message } = draft;
			if (message.at !== "announced" || message.nonce !== input.nonce) return step(draft);
			return step({ ...draft, message: { ...message, at: "ready", triedAt: undefined } });
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

/** Source position behind the text that has come. */
const endOf = ({ from, text }: Draft): number => from + text.length;

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
	// A turn that found nothing to see waits for more.
	const fresh = ended || draft.text.length > draft.checked || draft.tools !== draft.toolsShown;
	const { message } = draft;
	const early = !draft.hasVisibleText && earlyText(draft, rules) !== "";
	switch (message.at) {
		case "none": {
			const due = fresh || (early && rules.style === "edit");
			return (draft.hasVisibleText || early) && due ? begin(draft, ended, rules) : step(draft);
		}
		case "announced":
			return step(draft);
		case "ready": {
			if (early && draft.calling === undefined) return step(draft, want("create"));
			// A complete message is decided: it does not wait for text that belongs to the next one.
			if (!draft.hasVisibleText || !(fresh || message.fixed?.view)) return step(draft);
			if (ended || showsEarly(rules) || message.fixed) return step(draft, want(ended ? "final" : "create"));
			const checked = full(draft, rules);
			return checked.view ? step(checked.draft, want("create")) : step(checked.draft);
		}
		case "lost":
			return draft.hasVisibleText || ended ? step(draft, want("create")) : step(draft);
		case "open": {
			if (ended || message.complete) return step(draft, want("final", false));
			// A message of an earlier process may show text, so it is not shortened to its tools.
			const isKnown = draft.text !== "" || (rules.early && message.shown !== "");
			const decorated =
				message.way === "edit" && draft.tools !== draft.toolsShown && isKnown && draft.text.length >= draft.checked;
			return decorated || draft.text.length > draft.checked ? step(draft, want("edit")) : step(draft);
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
	if (message.at === "none" && untrueMessage(draft, rules) === undefined)
		return over(draft, { type: "delivery_complete", messageIds: [...draft.ids] });
	if (message.at !== "none" && draft.calling !== undefined) return step(draft);
	const isPlanned = message.at === "announced" || (message.at === "ready" && !message.doubtful);
	return isPlanned ? planned(removed(draft), rules) : step(draft, want("final", false));
}

/** How much more text makes it worth looking whether a message is full, for styles that show nothing before. */
const CHECK_CHARS = 256;

/** No message yet, and something to say. */
function begin(draft: Draft, ended: boolean, rules: DraftRules): DraftStep {
	if (showsEarly(rules)) return announce(draft, rules);
	if (rules.style === "preview" && draft.previews && !ended) {
		const paced = !rules.toolsApart || draft.tools === draft.toolsShown;
		return step(draft, want("preview", paced));
	}
	const checked = full(draft, rules);
	const { view } = checked;
	if (!view) return step(checked.draft);
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
