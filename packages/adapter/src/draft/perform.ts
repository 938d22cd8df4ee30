/** A draft's call as a call of the platform, and its outcome as the draft's next input. */

import { PlatformError, type SendOptions } from "../platform/platform.ts";
import type { DeliveryFields, Target } from "../port.ts";
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

const missing = (name: string) => new PlatformError("invalid", `This platform has no ${name} call.`);

export async function perform(context: AdapterContext, call: DraftCall, to: Addressed): Promise<DraftInput> {
	const { session } = context;
	const { target, render } = to;
	const { facts } = to;
	const options = (nonce: string, final: boolean, signal: AbortSignal): SendOptions => ({
		nonce,
		final,
		facts,
		signal,
	});
	const named = <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => context.call(call.type, to.fields, work);
	switch (call.type) {
		case "create": {
			const text = render(call.markdown);
			const made = await named((signal) => session.create(target, text, options(call.nonce, call.final, signal)));
			return { type: "created", messageId: made.messageId };
		}
		case "start": {
			const { start } = session;
			if (!start) throw missing("start");
			const made = await named((signal) =>
				start.call(session, target, call.markdown, options(call.nonce, call.final, signal)),
			);
			return { type: "created", messageId: made.messageId };
		}
		case "edit": {
			const text = render(call.markdown);
			await named(async (signal) => session.edit?.(target, call.id, text, options(call.nonce, call.final, signal)));
			return { type: "edited" };
		}
		case "append":
			await named(async (signal) =>
				session.append?.(target, call.id, call.markdown, options(call.nonce, call.final, signal)),
			);
			return { type: "edited" };
		case "stop":
			await named(async (signal) => session.stop?.(target, call.id, options(call.nonce, true, signal)));
			return { type: "edited" };
		case "remove":
			await named(async (signal) => session.remove?.(target, call.id, options(call.nonce, true, signal)));
			return { type: "edited" };
		case "preview": {
			const draftId = to.draftId(call.ordinal);
			const text = render(call.markdown);
			const { tools } = call;
			await named(async (signal) =>
				session.preview?.(target, draftId, text, { ...options(String(draftId), false, signal), tools }),
			);
			return { type: "edited" };
		}
		case "find": {
			const { find } = session;
			if (!find) throw missing("find");
			const look = (markdown: string) =>
				named((signal) => find.call(session, target, call.nonce, render(markdown), signal));
			const { instead } = call;
			const found = (await look(call.markdown)) ?? (instead === undefined ? undefined : await look(instead));
			return { type: "found", messageId: found?.messageId };
		}
		default:
			return call satisfies never;
	}
}
