/** Behaviour of a client that only a separate process shows: real signals, a pipe that closes, a daemon that is killed. */

import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { freshFolder } from "../runtime/folder.ts";
import { daemonHere, daemonWith, nexus as here, jsonLines } from "./in-process.ts";
import { nexus, up } from "./nexus.ts";

it("send reads from a pipe, stops the run on Ctrl-C and says so", async () => {
	const { data, on } = await daemonWith();
	const input = "/demo tokens=5000 rate=100";
	const sending = nexus(["send", "-", "--session", "stop", "--data", data], { input });
	await sending.until(({ out }) => out.length > 20);
	const { code, out, err } = await sending.end("SIGINT");
	expect(code).toBe(130);
	expect(err).toMatch(/^stopped$/m);
	expect(out.endsWith("\n")).toBe(true);
	const [stopped] = jsonLines<{ status: string; messages: { text: string }[] }>(
		(await on("runs", "--session", "stop", "--json")).out,
	);
	expect(stopped).toMatchObject({ status: "aborted" });
	expect(out.trim()).toBe(stopped!.messages[1]!.text.trim());
});

it("I10: send waits on over a restart of the daemon, and reads the answer then", async () => {
	const own = join(freshFolder(), "data");
	const first = await up(own);
	const busy = here(["send", "/demo tokens=5000 rate=50", "--session", "long", "--data", own]);
	await busy.until(({ out }) => out.length > 20);
	const waiting = here(["send", "/demo tokens=5 rate=0", "--session", "long", "--data", own]);
	await waiting.until(({ err }) => err.includes("queued"));
	await first.end("SIGKILL");
	await waiting.until(({ err }) => err.includes("reconnecting"));
	const second = await daemonHere(own);
	onTestFinished(() => second.close());
	const { code, out } = await waiting.end();
	expect({ code, out }).toEqual({ code: 0, out: "Demo engine: this text is\n" });
});

it("SIGUSR1 does not open Node's debugger in a daemon", async () => {
	const daemon = await up(join(freshFolder(), "data"));
	daemon.child.kill("SIGUSR1");
	await daemon.until(({ err }) => err.includes("SIGUSR1 was ignored"));
	expect(daemon.err).not.toContain("Debugger listening");
	expect((await fetch(`${daemon.ready.url}/healthz`)).status).toBe(200);
});

it("send is content when the reader has seen enough (EPIPE)", async () => {
	const { data, on } = await daemonWith();
	const sending = nexus(["send", "/demo tokens=100000 rate=100", "--session", "pipe", "--data", data]);
	await sending.until(({ out }) => out.length > 0);
	sending.child.stdout?.destroy();
	const { code, err } = await sending.end();
	expect([code, err]).toEqual([0, ""]);
	// The run continues without a reader.
	const [left] = jsonLines<{ run_id: string; status: string }>((await on("runs", "--session", "pipe", "--json")).out);
	expect(left!.status).toBe("running");
});
