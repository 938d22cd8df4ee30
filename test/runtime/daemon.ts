/** A daemon of the test's own, closed with its test, and the owner's requests to it. */

import { expect, onTestFinished } from "vitest";
import {
	type Daemon,
	type DaemonOptions,
	dataPaths,
	readToken,
	startDaemon,
} from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { until } from "../until.ts";
import { freshFolder } from "./folder.ts";

/** By default in a fresh folder, on a free port and with the demo engine. */
export async function daemonForTest(options: DaemonOptions = {}): Promise<Daemon> {
	const data = options.data ?? freshFolder();
	const daemon = await startDaemon({ port: 0, engine: "demo", logger: silentLog, ...options, data });
	onTestFinished(() => daemon.close());
	return daemon;
}

export const ownersBearer = ({ data }: Daemon) => ({ authorization: `Bearer ${readToken(dataPaths(data))}` });

/** A request with the owner's token: a POST when it has a body. */
export const call = (
	daemon: Daemon,
	path: string,
	body?: unknown,
	headers: Record<string, string> = {},
): Promise<Response> =>
	fetch(daemon.url + path, {
		method: body === undefined ? "GET" : "POST",
		headers: { ...ownersBearer(daemon), "content-type": "application/json", ...headers },
		body: body === undefined ? undefined : JSON.stringify(body),
	});

export const callJson = async <T>(...request: Parameters<typeof call>): Promise<T> =>
	(await (await call(...request)).json()) as T;

/** Sends a message that starts a run. */
export async function send(daemon: Daemon, text: string, headers?: Record<string, string>): Promise<string> {
	const response = await call(daemon, "/v1/sessions/s/messages", { text }, headers);
	expect(response.status).toBe(202);
	return ((await response.json()) as { run_id: string }).run_id;
}

export async function settled(daemon: Daemon, runId: string) {
	const run = () => callJson<{ status: string }>(daemon, `/v1/runs/${runId}`);
	await until(`the end of ${runId}`, async () => !["running", "stopping"].includes((await run()).status));
	return run();
}

/** The run of a message, once it has completed. */
export async function answered(daemon: Daemon, text: string, headers?: Record<string, string>): Promise<string> {
	const runId = await send(daemon, text, headers);
	expect(await settled(daemon, runId)).toMatchObject({ status: "completed" });
	return runId;
}
