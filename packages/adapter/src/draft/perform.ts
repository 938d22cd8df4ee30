/** Turns a draft's call into a call of the platform, and its outcome into the draft's next input. */

import type { CreatedMessage, SendOptions, Session } from "../platform/session.ts";
import type { DeliveryFields, RunFacts, Target } from "../port.ts";
import type { AdapterContext } from "../serve/context.ts";
import type { DraftCall, DraftInput } from "./draft-state.ts";

export interface Addressed {
	target: Target;
	fields: DeliveryFields;
	facts: NonNullable<SendOptions["facts"]>;
	render(markdown: string): string;
	/** The same for all previews of one message, never zero. */
	draftId(ordinal: number): number;
}

export async function perform(context: AdapterContext, call: DraftCall, to: Addressed): Promise<DraftInput> {
	const { session } = context;
	const { target, render, facts } = to;
	const named = <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => context.call(call.type, to.fields, work);
	const created = async (
		{ nonce, final }: { nonce: string; final: boolean },
		create: (options: SendOptions) => Promise<CreatedMessage>,
	): Promise<DraftInput> => {
		const { messageId } = await named((signal) => context.create({ nonce, final, facts, signal }, create));
		return { type: "created", messageId };
	};
	const edited = async (
		{ nonce, final = true }: { nonce: string; final?: boolean },
		edit: (options: SendOptions) => Promise<void> | undefined,
	): Promise<DraftInput> => {
		await named(async (signal) => edit({ nonce, final, facts, signal }));
		return { type: "edited" };
	};
	// The draft's rules ask only for capabilities that the session has.
	const { editing, streaming, previewing } = session as Required<Session>;
	switch (call.type) {
		case "create": {
			const text = render(call.markdown);
			return await created(call, (options) => session.create(target, text, options));
		}
		case "start":
			return await created(call, (options) => streaming.start(target, call.markdown, options));
		case "edit": {
			const text = render(call.markdown);
			return await edited(call, (options) => editing.edit(target, call.id, text, options));
		}
		case "append":
			return await edited(call, (options) => streaming.append(target, call.id, call.markdown, options));
		case "stop":
			return await edited(call, (options) => streaming.stop(target, call.id, options));
		case "remove":
			return await edited(call, (options) => editing.remove?.(target, call.id, options));
		case "preview": {
			const draftId = to.draftId(call.ordinal);
			const text = render(call.markdown);
			const show = (options: SendOptions) =>
				previewing.preview(target, draftId, text, { ...options, tools: call.tools });
			return await edited({ nonce: String(draftId), final: false }, show);
		}
		case "find": {
			const look = (markdown: string) =>
				named(async (signal) => context.find?.(target, call.nonce, render(markdown), signal));
			const { instead } = call;
			const found = (await look(call.markdown)) ?? (instead === undefined ? undefined : await look(instead));
			return { type: "found", messageId: found?.messageId };
		}
		default:
			return call satisfies never;
	}
}

const WORDS = ["agent", "model", "phase"] as const;

/** Facts about the run of an answer, read from a line; absent and invalid fields are ignored. */
export function factsOf(line: object): RunFacts {
	const given = line as Record<string, unknown>;
	const words = WORDS.flatMap((name) => (typeof given[name] === "string" ? [[name, given[name]]] : []));
	const counts = Object.entries(given.usage ?? {}).filter(([, count]) => typeof count === "number");
	return { ...Object.fromEntries(words), ...(counts.length > 0 ? { usage: Object.fromEntries(counts) } : {}) };
}
