/** Responses of the daemon that are late, or longer than requested. */

import { afterEach, expect, test, vi } from "vitest";
import { readSessions } from "../../packages/web/src/app/api.ts";
import { openLab } from "../../packages/web/src/lab/lab-feed.ts";

afterEach(() => void vi.unstubAllGlobals());

type Answer = (url: URL, init: RequestInit) => unknown;

/** A daemon; the addresses it was asked for. */
function daemon(answer: Answer): string[] {
	const asked: string[] = [];
	vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
		const url = new URL(path, "http://127.0.0.1");
		asked.push(url.pathname);
		return Response.json(await answer(url, init));
	});
	return asked;
}

test("there are more sessions, also when the last ones of a page were used at the same moment", async () => {
	const all = Array.from({ length: 7 }, (_, n) => ({ session: `s${n}`, updated_at: n < 2 ? 1 : n }));
	daemon(({ searchParams }) => {
		const before = Number(searchParams.get("before") ?? Number.MAX_SAFE_INTEGER);
		const older = all.filter(({ updated_at: at }) => at < before).sort((a, b) => b.updated_at - a.updated_at);
		const last = older[Number(searchParams.get("limit")) - 1]?.updated_at ?? 0;
		return { sessions: older.filter(({ updated_at: at }) => at >= last) };
	});
	expect((await readSessions(5)).more).toBe(true);
	expect(await readSessions(6)).toMatchObject({ sessions: { length: 7 }, more: true });
	expect(await readSessions(8)).toMatchObject({ sessions: { length: 7 }, more: false });
});

test("a lab that was left while its run was being started opens no stream", async () => {
	vi.stubGlobal("document", { visibilityState: "visible", addEventListener() {}, removeEventListener() {} });
	const started = Promise.withResolvers<{ run_id: string }>();
	const asked = daemon(({ pathname }) => (pathname === "/v1/lab" ? started.promise : { now: 0, channels: [] }));
	const lab = openLab({ onSignedOut() {}, schedule: (run) => run() });
	lab.actions.run("hello");
	await vi.waitFor(() => expect(asked).toContain("/v1/lab"), 15_000);
	lab.close();
	started.resolve({ run_id: "run_1" });
	for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
	expect(asked.filter((path) => path.startsWith("/v1/runs/"))).toEqual([]);
});
