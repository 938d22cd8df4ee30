/** Turns a draft's call into a call of the platform, and its outcome into the draft's next input. */

import { PlatformError } from "../platform/platform-error.ts";
import type { SendOptions, Session } from "../platform/session.ts";
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
	const write = <T>(nonce: string, final: boolean, work: (options: SendOptions) => Promise<T>): Promise<T> =>
		named((signal) => work({ nonce, final, facts, signal }));
	switch (call.type) {
		case "create": {
			const text = render(call.markdown);
			const { messageId } = await write(call.nonce, call.final, (options) =>
				context.create(options, (noted) => session.create(target, text, noted)),
			);
			return { type: "created", messageId };
		}
		case "start": {
			const streaming = needed(session, "streaming");
			const { messageId } = await write(call.nonce, call.final, (options) =>
				context.create(options, (noted) => streaming.start(target, call.markdown, noted)),
			);
			return { type: "created", messageId };
		}
		case "edit": {
			const text = render(call.markdown);
			const editing = needed(session, "editing");
			await write(call.nonce, call.final, (options) => editing.edit(target, call.id, text, options));
			return { type: "edited" };
		}
		case "append": {
			const streaming = needed(session, "streaming");
			await write(call.nonce, call.final, (options) => streaming.append(target, call.id, call.markdown, options));
			return { type: "edited" };
		}
		case "stop": {
			const streaming = needed(session, "streaming");
			await write(call.nonce, true, (options) => streaming.stop(target, call.id, options));
			return { type: "edited" };
		}
		case "remove": {
			const editing = needed(session, "editing");
			await write(call.nonce, true, async (options) => editing.remove?.(target, call.id, options));
			return { type: "edited" };
		}
		case "preview": {
			const draftId = to.draftId(call.ordinal);
			const text = render(call.markdown);
			const previewing = needed(session, "previewing");
			const { tools } = call;
			await write(String(draftId), false, (options) =>
				previewing.preview(target, draftId, text, { ...options, tools }),
			);
			return { type: "edited" };
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

/** The draft's rules ask only for capabilities that the session has. */
function needed<Name extends "editing" | "streaming" | "previewing">(
	session: Session,
	name: Name,
): NonNullable<Session[Name]> {
	const capability = session[name];
	if (capability === undefined) throw new PlatformError("invalid", `This platform has no ${name}.`);
	return capability;
}

const WORDS = ["agent", "model", "phase"] as const;

/** Facts about the run of an answer, read from a line; absent and invalid fields are ignored. */
export function factsOf(line: object): RunFacts {
	const given = line as Record<string, unknown>;
	const words = WORDS.flatMap((name) => (typeof given[name] === "string" ? [[name, given[name]]] : []));
	const counts = Object.entries(given.usage ?? {}).filter(([, count]) => typeof count === "number");
	return { ...Object.fromEntries(words), ...(counts.length > 0 ? { usage: Object.fromEntries(counts) } : {}) };
}
