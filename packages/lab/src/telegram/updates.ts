/** Messages and presses of people in the fake Telegram, and how they reach the bot: by polling or at its webhook. */

import { isPrivate, type Presses, type TelegramMessage, TelegramRefusal, type TelegramWorld } from "./messages.ts";

export async function getUpdates(
	world: TelegramWorld,
	fields: Record<string, unknown>,
	gone: AbortSignal,
): Promise<unknown[]> {
	if (world.webhook.url !== "") {
		throw new TelegramRefusal(
			409,
			"Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
		);
	}
	// The offset confirms everything before it.
	world.updates = world.updates.filter(({ update_id }) => update_id >= Number(fields.offset ?? 0));
	const { clock } = world.options;
	const until = clock.now() + Number(fields.timeout ?? 0) * 1000;
	while (world.updates.length === 0 && clock.now() < until && !gone.aborted) {
		await new Promise<void>((resolve) => {
			const cancel = clock.after(until - clock.now(), resolve);
			world.waiting.push(() => {
				cancel();
				resolve();
			});
			gone.addEventListener("abort", () => resolve(), { once: true });
		});
	}
	return world.updates.slice(0, 100);
}

export async function inject(
	world: TelegramWorld,
	{ text, from = "42", to, ...extra }: { text: string; from?: string; to?: string; [extra: string]: unknown },
): Promise<void> {
	const chat = to ?? from;
	const { file, fileBytes, fileName, ...fields } = extra as { file?: Buffer; fileBytes?: number; fileName?: string };
	const id = `file${world.files.size + 1}`;
	if (file) world.files.set(id, file);
	const name = fileName ?? "note.txt";
	const document = file && {
		file_id: id,
		file_unique_id: id,
		file_name: name,
		mime_type: "text/plain",
		file_size: fileBytes ?? file.length,
	};
	const update = {
		update_id: world.ids.update++,
		message: {
			message_id: world.ids.message++,
			date: Math.floor(world.options.clock.now() / 1000),
			chat: isPrivate(chat)
				? { id: Number(chat), type: "private", first_name: "Ann" }
				: { id: Number(chat), type: "supergroup", title: "Group" },
			from: { id: Number(from), is_bot: false, first_name: "Ann" },
			...(document ? { document, caption: text } : { text }),
			...fields,
		},
	};
	await tell(world, update);
}

export async function press(
	world: TelegramWorld,
	message: TelegramMessage | undefined,
	label: string,
	from = "42",
): Promise<string | undefined> {
	const button = message?.buttons.find(({ text }) => text === label);
	if (!message || !button) throw new Error(`there is no button "${label}"`);
	const { id, answered } = world.presses.begin();
	await tell(world, {
		update_id: world.ids.update++,
		callback_query: {
			id,
			chat_instance: "1",
			data: button.callback_data,
			from: { id: Number(from), is_bot: false, first_name: "Ann" },
			message: {
				message_id: message.message_id,
				date: 1,
				chat: { id: Number(message.chat), type: typeOf(message.chat) },
			},
		},
	});
	return answered;
}

const typeOf = (chat: string): string => (isPrivate(chat) ? "private" : "supergroup");

async function tell(world: TelegramWorld, update: TelegramWorld["updates"][number]): Promise<void> {
	if (world.webhook.url === "") {
		world.updates.push(update);
		for (const wake of world.waiting.splice(0)) wake();
		return;
	}
	const headers = { "content-type": "application/json", "x-telegram-bot-api-secret-token": world.webhook.secret };
	const response = await fetch(world.webhook.url, { method: "POST", headers, body: JSON.stringify(update) });
	if (!response.ok) world.webhook.lastError = `Wrong response from the webhook: ${response.status}`;
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
