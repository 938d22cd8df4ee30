/** Questions with buttons below them, and who pressed what of them. */

import { buttonData, readButton, rowsOf } from "@nexus-stream/adapter/platform/buttons";
import type { OnPress } from "@nexus-stream/adapter/platform/session";
import type { InboundChoice, Question } from "@nexus-stream/adapter/port";
import {
	type APIActionRowComponent,
	type APIButtonComponentWithCustomId,
	type APIMessageComponentInteraction,
	ButtonStyle,
	ComponentType,
	type GatewayInteractionCreateDispatchData,
	InteractionResponseType,
	InteractionType,
	MessageFlags,
	Routes,
} from "discord-api-types/v10";
import type { DiscordClient } from "./api.ts";

const ROW_BUTTONS = 5;
const NOTE_CHARS_MAX = 2000;

export function componentsOf({ id, choices }: Question): APIActionRowComponent<APIButtonComponentWithCustomId>[] {
	const buttons = choices.map(
		({ id: choice, label, danger }): APIButtonComponentWithCustomId => ({
			type: ComponentType.Button,
			style: danger ? ButtonStyle.Danger : ButtonStyle.Primary,
			label,
			custom_id: buttonData(id, choice),
		}),
	);
	return rowsOf(buttons, ROW_BUTTONS).map((components) => ({ type: ComponentType.ActionRow, components }));
}

/** Undefined: no button of a question. */
function readPress(data: GatewayInteractionCreateDispatchData): InboundChoice | undefined {
	if (data.type !== InteractionType.MessageComponent) return undefined;
	const button = readButton(data.data.custom_id);
	const user = data.member?.user ?? data.user;
	if (!button || !user || user.bot) return undefined;
	const name = data.member?.nick ?? user.global_name ?? user.username;
	return {
		eventId: `press:${data.id}`,
		...button,
		messageId: data.message.id,
		from: { id: user.id, name },
		chat: { id: data.channel.id, type: data.guild_id === undefined ? "direct" : "group" },
	};
}

/** Discord waits three seconds: the press is confirmed at once, and the note follows. */
export async function takePress(
	client: DiscordClient,
	data: GatewayInteractionCreateDispatchData,
	press: OnPress,
): Promise<void> {
	const choice = readPress(data);
	if (!choice) return;
	const { id, token, application_id: application } = data as APIMessageComponentInteraction;
	const body = { type: InteractionResponseType.DeferredMessageUpdate };
	const confirmed = client.call("post", Routes.interactionCallback(id, token), { body, auth: false });
	// The choice counts even if the button says that it failed.
	confirmed.catch(() => {});
	await press({
		choice,
		async answer(note) {
			await confirmed;
			if (note === undefined) return;
			const content = note.slice(0, NOTE_CHARS_MAX).toWellFormed();
			const told = { content, flags: MessageFlags.Ephemeral, allowed_mentions: { parse: [] } };
			await client.call("post", Routes.webhook(application, token), { body: told, auth: false });
		},
	});
}
