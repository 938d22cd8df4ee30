/** Fast time: one for all processes of a test; a call is judged by the clock of the process that makes it. */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { serveFake, TIME_HEADER } from "../../packages/lab/src/http.ts";
import { createTelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import { timedAdapter } from "../children.ts";
import { manualClock } from "../clock.ts";
import { fastTime } from "./time.ts";

const FACTOR = 1000;
const run = promisify(execFile);

test("a restarted process reads a time that continues where the one before it was", async () => {
	const { clock, env } = fastTime(FACTOR);
	const script = `import { timeOf } from ${JSON.stringify(join(import.meta.dirname, "time.ts"))};
		console.log(timeOf(process.env).clock.now());`;
	const child = async () => {
		const args = ["--input-type=module-typescript", "-e", script];
		return Number((await run(process.execPath, args, { env: { ...process.env, ...env } })).stdout);
	};
	const times = [clock.now(), await child(), clock.now(), await child(), clock.now()];
	expect(times).toEqual(times.toSorted((a, b) => a - b));
	expect(times[3]).toBeGreaterThan(times[1] ?? Number.NaN);
});

test("a stall on the way is not the caller's: calls made in time are taken, calls made too early are refused", async () => {
	const clock = manualClock(10_000);
	const fake = await createTelegramFake({ clock, privateRate: [1, 1000] });
	const send = async (at: number) => {
		const headers = { "content-type": "application/json", [TIME_HEADER]: String(at) };
		const body = JSON.stringify({ chat_id: 42, text: `at ${at}` });
		const response = await fetch(`${fake.url}/bot${fake.token}/sendMessage`, { method: "POST", headers, body });
		return response.status;
	};
	try {
		// Held up, all three arrive at one moment.
		expect([await send(7000), await send(8000), await send(9000)]).toEqual([200, 200, 200]);
		clock.advance(60_000);
		expect(await send(9500)).toBe(429);
		expect(fake.calls.map(({ at }) => at)).toEqual([-3000, -2000, -1000, -500]);
	} finally {
		await fake.close();
	}
});

// One whose library calls through node:http, and one that calls through fetch.
test.each([
	["telegram", { token: "1:x" }],
	["discord", { token: "x" }],
])("%s's adapter stamps its calls with its own time", async (channel, settings) => {
	const { clock, env } = fastTime(FACTOR);
	const stamps: (string | undefined)[] = [];
	const fake = await serveFake({
		clock,
		name: () => undefined,
		handle({ headers }) {
			stamps.push(headers[TIME_HEADER]);
			return { status: 500 };
		},
		refuse: () => ({ status: 500 }),
	});
	const folder = mkdtempSync(join(tmpdir(), "nexus-time-"));
	try {
		const account = join(folder, "account.json");
		writeFileSync(account, JSON.stringify({ id: "a", settings: { ...settings, api_url: fake.url } }));
		const before = clock.now();
		const [program = "", ...fixed] = timedAdapter(channel);
		const child = run(program, [...fixed, "health", "--account", "a"], {
			env: { ...process.env, ...env, NEXUS_ACCOUNT_FILE: account },
		});
		await expect(child).rejects.toMatchObject({ code: 1 });
		expect(Number(stamps[0])).toBeGreaterThan(before);
		expect(Number(stamps[0])).toBeLessThan(clock.now());
	} finally {
		await fake.close();
		rmSync(folder, { recursive: true, force: true });
	}
});
