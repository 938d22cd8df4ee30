/** Inline keyboards of the fake Bot API: what they may be, and pressing them. */

export interface Keyboard {
	text: string;
	callback_data: string;
}

/** Bytes of what a button carries. */
const DATA_BYTES_MAX = 64;
const BUTTONS_MAX = 100;

/** The buttons of a message, or what Telegram says against them. */
export function readKeyboard(markup: unknown): Keyboard[] | { error: string } {
	const rows = (markup as { inline_keyboard?: Keyboard[][] } | undefined)?.inline_keyboard ?? [];
	const buttons = rows.flat();
	if (buttons.length > BUTTONS_MAX) return { error: "REPLY_MARKUP_TOO_LONG" };
	for (const { text, callback_data: data = "" } of buttons) {
		if (typeof text !== "string" || text.trim() === "")
			return { error: "can't parse inline keyboard button: Text buttons must have text" };
		const bytes = Buffer.byteLength(data, "utf8");
		if (bytes === 0 || bytes > DATA_BYTES_MAX) return { error: "BUTTON_DATA_INVALID" };
	}
	return buttons;
}

/** Presses that wait for their answer. */
export interface Presses {
	begin(): { id: string; answered: Promise<string | undefined> };
	/** False: there was no such press, or it is answered. */
	answer(id: string, text: string | undefined): boolean;
}

export function createPresses(): Presses {
	const waiting = new Map<string, (text: string | undefined) => void>();
	let last = 7000;
	return {
		begin() {
			const id = String(++last);
			const { promise, resolve } = Promise.withResolvers<string | undefined>();
			waiting.set(id, resolve);
			return { id, answered: promise };
		},
		answer(id, text) {
			const resolve = waiting.get(id);
			waiting.delete(id);
			resolve?.(text);
			return resolve !== undefined;
		},
	};
}
