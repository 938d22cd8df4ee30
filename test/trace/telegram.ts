/** A chat on a Telegram that is played, with a delivery to it by an adapter process whose code is counted as well. */

import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOutbound } from "../../packages/daemon/src/nex/nex.ts";
import { createTelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import type { Rig } from "../edge/rig.ts";
import { removeFolder } from "../runtime/folder.ts";
import { fastTime } from "../time/time.ts";
import { until } from "../until.ts";
import type { Counts, Coverage } from "./coverage.ts";
import type { Reader } from "./reader.ts";

/** The platform's pace, one edit a second, is a millisecond: every token is shown before the next. */
const TIME = fastTime(1000);
const ADAPTER = join(import.meta.dirname, "../time/adapter.ts");

export interface TelegramReader extends Reader {
	/** The adapter process. */
	coverage: Coverage;
}

export async function deliverToTelegram({ bus, ledger }: Rig, runId: string): Promise<TelegramReader> {
	const dataDir = mkdtempSync(join(tmpdir(), "nexus-trace-"));
	const file = join(dataDir, "counts.json");
	const fake = await createTelegramFake({ clock: TIME.clock });
	const preload = new URL("adapter.ts", import.meta.url);
	preload.searchParams.set("file", file);
	const telegram = {
		command: [process.execPath, "--conditions=nexus-source", "--import", preload.href, ADAPTER, "telegram"],
		env: { ...TIME.env },
		accounts: { main: { settings: { token: fake.token, api_url: fake.url } } },
	};
	const outbound = createOutbound({ bus, ledger, dataDir, adapters: { telegram }, log: silentLog });
	const target = { to: "42" };
	await outbound.deliver({ runId, account: { channel: "telegram", id: "main" }, target });
	return {
		shows: (token) => fake.visible(target.to).join("").includes(token),
		coverage: coverageOf(file),
		async close() {
			await outbound.stop(0);
			await fake.close();
			removeFolder(dataDir);
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
