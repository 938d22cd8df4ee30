/** The channel lab: one run on every fake platform at once, through the real adapter processes. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { freshFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { daemonHere } from "./in-process.ts";

interface State {
	run_id?: string;
	channels: {
		channel: string;
		mode?: string;
		state?: string;
		messages: { text: string }[];
		calls: { call: string; status: number }[];
	}[];
}

it("I7: an answer is whole on every platform of the lab", async () => {
	const data = freshFolder();
	const daemon = await daemonHere(data);
	onTestFinished(() => daemon.close());
	const token = readFileSync(join(data, "token"), "utf8").trim();
	const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
	const api = async <T>(path: string, body?: unknown): Promise<T> => {
		const response = await fetch(daemon.url + path, {
			headers,
			...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
		});
		const answer = (await response.json()) as T;
		expect(response.ok, JSON.stringify(answer)).toBe(true);
		return answer;
	};
	expect(await api("/v1/lab/fault", { channel: "telegram", kind: "429", count: 1 })).toEqual({ set: true });
	const begun = await api<{ run_id: string; session: string; channels: { channel: string }[] }>("/v1/lab", {
		text: "/demo tokens=5000 rate=200 stall_after=40",
		channels: ["telegram", "sms"],
	});
	expect(begun).toMatchObject({
		session: expect.stringMatching(/^lab_/),
		channels: [{ channel: "telegram" }, { channel: "sms" }],
	});
	// Refused before it is accepted: nothing of it runs later.
	const second = await fetch(`${daemon.url}/v1/lab`, { headers, method: "POST", body: '{"text":"again"}' });
	expect(second.status).toBe(409);
	let state = await api<State>("/v1/lab/state");
	const ours = () => state.channels.filter(({ channel }) => channel === "telegram" || channel === "sms");
	const reached = (what: string, done: () => boolean) =>
		until(what, async () => {
			state = await api<State>("/v1/lab/state");
			return done();
		});
	// The run is silent until it is stopped, so that it was still under way above, however long that took.
	await reached("both chats show something", () => ours().every(({ messages }) => messages.length > 0));
	await api(`/v1/runs/${begun.run_id}/abort`, {});
	await reached("both deliveries are complete", () => ours().every((each) => each.state === "complete"));
	expect(ours().map((each) => [each.channel, each.state])).toEqual([
		["telegram", "complete"],
		["sms", "complete"],
	]);
	const words = (text: string) => text.replace(/[^\p{L}\p{N}]+/gu, "");
	const run = await api<{ messages: { role: string; text: string }[] }>(`/v1/runs/${begun.run_id}`);
	const answer = run.messages.flatMap(({ role, text }) => (role === "assistant" ? [text] : [])).join("");
	// The first call of the answer was refused; nothing is lost by it.
	expect(ours()[0]?.calls.find(({ call }) => call !== "sendChatAction")?.status).toBe(429);
	for (const { messages, calls } of ours()) {
		expect(words(messages.map(({ text }) => text).join(""))).toBe(words(answer));
		expect(calls.length).toBeGreaterThan(0);
	}
	const { accounts } = await api<{ accounts: { channel: string; lab?: true }[] }>("/v1/accounts");
	expect(accounts.find(({ channel }) => channel === "sms")?.lab).toBe(true);
	await daemon.close();
	expect(daemon.state).toBe("STOPPED");
}, 240_000);
