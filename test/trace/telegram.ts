/** An account on a Telegram that is played: a delivery to it, or messages from it, by an adapter process whose code is counted as well. */

import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { createNex, createOutbound } from "../../packages/daemon/src/nex/nex.ts";
import { createTelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import type { Rig } from "../edge/rig.ts";
import { quiet } from "../quiet.ts";
import { removeFolder } from "../runtime/folder.ts";
import { openPlainStore } from "../store.ts";
import { fastTime } from "../time/time.ts";
import { until } from "../until.ts";
import type { Counts, Coverage } from "./coverage.ts";
import type { Reader } from "./reader.ts";

/** The platform's pace, one edit a second, is a millisecond: every token is shown before the next. */
const TIME = fastTime(1000);
const ADAPTER = join(import.meta.dirname, "../time/adapter.ts");

/** The process that runs `verb` is counted. */
async function openAccount(verb: "stream" | "monitor") {
	const dataDir = mkdtempSync(join(tmpdir(), "nexus-trace-"));
	const file = join(dataDir, "counts.json");
	const fake = await createTelegramFake({ clock: TIME.clock });
	const preload = new URL("adapter.ts", import.meta.url);
	preload.searchParams.set("file", file);
	preload.searchParams.set("verb", verb);
	const telegram = {
		command: [process.execPath, "--conditions=nexus-source", "--import", preload.href, ADAPTER, "telegram"],
		env: { ...TIME.env },
		accounts: { main: { settings: { token: fake.token, api_url: fake.url } } },
	};
	const close = async () => {
		await fake.close();
		removeFolder(dataDir);
	};
	return { fake, dataDir, adapters: { telegram }, coverage: coverageOf(file), close };
}

export interface TelegramReader extends Reader {
	/** The adapter process. */
	coverage: Coverage;
}

export async function deliverToTelegram({ bus, ledger }: Rig, runId: string): Promise<TelegramReader> {
	const { fake, dataDir, adapters, coverage, close } = await openAccount("stream");
	const outbound = createOutbound({ bus, ledger, dataDir, adapters, log: silentLog });
	const target = { to: "42" };
	await outbound.deliver({ runId, account: { channel: "telegram", id: "main" }, target });
	return {
		shows: (token) => fake.visible(target.to).join("").includes(token),
		coverage,
		async close() {
			await outbound.stop(0);
			await close();
		},
	};
}

/** A person writes to the account, each time in another chat, and each message starts a run, which says nothing. */
export async function receiveFromTelegram() {
	const { fake, dataDir, adapters, coverage, close } = await openAccount("monitor");
	const store = openPlainStore(":memory:");
	const { bus, ledger } = store;
	const started = new Set<string>();
	const engine = {
		name: "silent",
		async *run({ messages }: { messages: readonly { text: string }[] }, { signal }: { signal: AbortSignal }) {
			started.add(messages.at(-1)!.text);
			await new Promise((resolve) => signal.addEventListener("abort", resolve));
			yield* [];
		},
	};
	const broker = createBroker({ bus, ledger, engine, ...quiet });
	const outbound = createOutbound({ bus, ledger, dataDir, adapters, log: silentLog });
	const config = { channels: { telegram: { acl: { unknown: "allow" as const }, accounts: { main: {} } } } };
	const nex = createNex({ broker, bus, ledger, outbound, config, log: silentLog });
	await nex.load();
	await nex.recover();
	await outbound.start();
	nex.start();
	let chats = 0;
	return {
		coverage,
		async write(text: string) {
			const chat = String(1000 + chats++);
			await fake.inject({ text, from: chat, to: chat });
			await until(`a run for ${text}`, () => started.has(text));
		},
		async close() {
			nex.close();
			await broker.drain(0);
			await nex.stop(0);
			await outbound.stop(0);
			await store.close();
			await close();
		},
	};
}

/** The report that the preload (adapter.ts) writes on a signal. */
function coverageOf(file: string): Coverage {
	let asked = 0;
	return {
		async take() {
			asked += 1;
			process.kill(Number(readFileSync(`${file}.pid`, "utf8")), "SIGUSR2");
			const read = () => JSON.parse(readFileSync(file, "utf8")) as { taken: number; counts: Counts };
			await until("the adapter's counts", () => existsSync(file) && read().taken === asked);
			return read().counts;
		},
	};
}
