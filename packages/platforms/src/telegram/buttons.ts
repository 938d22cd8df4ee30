/** Questions with an inline keyboard, and who pressed what of it. */

import type { Press } from "@nexus-stream/adapter";
import { buttonData, readButton, rowsOf } from "@nexus-stream/adapter/platform/buttons";
import type { InboundChoice, Question } from "@nexus-stream/adapter/port";
import type { RawApi } from "grammy";
import type { CallbackQuery, InlineKeyboardMarkup } from "grammy/types";
import { nameOf } from "./inbound.ts";

/** Longer labels are cut on a phone. */
const ROW_BUTTONS = 2;
const NOTE_CHARS_MAX = 200;

export function keyboardOf({ id, choices }: Question): { reply_markup: InlineKeyboardMarkup } {
	const buttons = choices.map(({ id: choice, label, danger }) => ({
		text: label,
		callback_data: buttonData(id, choice),
		style: danger ? ("danger" as const) : undefined,
	}));
	return { reply_markup: { inline_keyboard: rowsOf(buttons, ROW_BUTTONS) } };
}

/** Every press is answered, else the button spins. `choice` is undefined for buttons that are not of a question. */
export function readPress(
	query: CallbackQuery,
	api: RawApi,
): { choice?: InboundChoice; answer: NonNullable<Press["answer"]> } {
	const answer = async (note?: string) => {
		const told = note === undefined ? {} : { text: note.slice(0, NOTE_CHARS_MAX).toWellFormed(), show_alert: true };
		await api.answerCallbackQuery({ callback_query_id: query.id, ...told });
	};
	const button = readButton(query.data);
	const { from, message } = query;
	if (!button || !message || from.is_bot) return { answer };
	return {
		answer,
		choice: {
			eventId: `press:${query.id}`,
			...button,
			messageId: String(message.message_id),
			from: { id: String(from.id), name: nameOf(from) },
			chat: { id: String(message.chat.id), type: message.chat.type === "private" ? "direct" : "group" },
		},
	};
}
