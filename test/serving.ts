/** Servers on this machine in others' places, closed with their test. */

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { createTelegramFake, type TelegramFake } from "../packages/lab/src/telegram/telegram.ts";

/** Gives the address of the server, without a slash at the end. */
export async function serving(answer: RequestListener): Promise<string> {
	const server = createServer(answer);
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	onTestFinished(() => {
		server.closeAllConnections();
		server.close();
	});
	return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function telegramForTest(): Promise<TelegramFake> {
	const fake = await createTelegramFake();
	onTestFinished(() => fake.close());
	return fake;
}
