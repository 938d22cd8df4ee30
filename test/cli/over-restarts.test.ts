/** How often a command asks a failing daemon again: a temporary failure is waited for, a lasting one reported. */

import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, it, vi } from "vitest";
import { overRestarts } from "../../packages/daemon/src/cli/client.ts";
import { type ErrorCode, NexusError } from "../../packages/protocol/src/protocol.ts";

vi.mock("node:timers/promises", async (original) => ({
	...(await original<typeof import("node:timers/promises")>()),
	setTimeout: vi.fn(async () => {}),
}));

beforeEach(() => void vi.mocked(sleep).mockClear());

/** Fails with one code after the other, then answers; tells how often it was asked and whether that was said. */
async function asking(...codes: ErrorCode[]) {
	const dropped: string[] = [];
	let asked = 0;
	const ask = async () => {
		const code = codes[asked++];
		if (code !== undefined) throw new NexusError(code, `failed with ${code}`);
		return "answer";
	};
	const outcome = await overRestarts(ask, (because) => dropped.push(because)).catch((cause: NexusError) => cause.code);
	return { outcome, asked, dropped, waits: vi.mocked(sleep).mock.calls.length };
}

const internals = (count: number) => Array.from({ length: count }, () => "internal" as const);

it("asks five times more after internal errors, and says once that it does", async () => {
	const dropped = ["failed with internal"];
	expect(await asking(...internals(5))).toEqual({ outcome: "answer", asked: 6, dropped, waits: 5 });
});

it("tells a sixth internal error, however often the daemon was away in between", async () => {
	expect(await asking(...internals(6))).toMatchObject({ outcome: "internal", asked: 6 });
	const mixed = internals(6).flatMap((code) => ["unavailable" as const, code]);
	expect(await asking(...mixed)).toMatchObject({
		outcome: "internal",
		asked: 12,
		dropped: ["failed with unavailable"],
	});
});

it("asks on while a daemon is only away, and not at all after a refusal", async () => {
	const away = Array.from({ length: 20 }, () => "unavailable" as const);
	expect(await asking(...away)).toMatchObject({ outcome: "answer", asked: 21 });
	vi.mocked(sleep).mockClear();
	expect(await asking("not_found")).toEqual({ outcome: "not_found", asked: 1, dropped: [], waits: 0 });
});
