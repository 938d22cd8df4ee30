/** The errors of failed requests: no server, a cut response, or a response of another server. */

import { describe, expect, it } from "vitest";
import { createClient, type LinkState } from "../../packages/client/src/client.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { until } from "../until.ts";

/** A body that breaks after the text, as Node's fetch breaks it. */
function cutAfter(text: string): Response {
	const pieces = [text];
	return new Response(
		new ReadableStream({
			pull(controller) {
				const piece = pieces.shift();
				if (piece !== undefined) controller.enqueue(new TextEncoder().encode(piece));
				else controller.error(new TypeError("terminated", { cause: new Error("other side closed") }));
			},
		}),
	);
}

const answering = (answer: () => Response, url?: string) => createClient({ url, fetch: async () => answer() });

describe("a response that is not the daemon's", () => {
	it("a body that is cut half-way is a daemon that cannot be reached", async () => {
		const { api } = answering(() => cutAfter('{"runs":['), "http://nexus.test/");
		await expect(api.runs()).rejects.toMatchObject({
			code: "unavailable",
			message: "cannot reach the daemon at http://nexus.test (other side closed)",
		});
	});

	it.each([
		["http://nexus.test/behind", "http://nexus.test"],
		[undefined, "this address"],
	])("a body that is not JSON comes from another server, whatever produced the response (%s)", async (url, named) => {
		const { api } = answering(() => new Response("<html>"), url);
		await expect(api.runs()).rejects.toMatchObject({
			code: "unavailable",
			message: `what answers at ${named} is not a Nexus daemon`,
		});
	});

	it("frames that are cut half-way end with a NexusError, after the lines that were whole", async () => {
		const { api } = answering(() => cutAfter("one\ntwo\nthr"));
		const lines: string[] = [];
		const reading = (async () => {
			for await (const line of api.frames("run")) lines.push(line);
		})();
		await expect(reading).rejects.toBeInstanceOf(NexusError);
		await expect(reading).rejects.toMatchObject({ code: "unavailable", message: "the connection was cut" });
		expect(lines).toEqual(["one", "two"]);
	});
});

describe("a daemon that is not located", () => {
	const locate = () => {
		throw new Error("no daemon is registered for team blue");
	};

	it("a request fails with the words of locate", async () => {
		await expect(createClient({ locate }).api.runs()).rejects.toMatchObject({
			code: "unavailable",
			message: "no daemon is registered for team blue",
		});
	});

	it("a stream waits with the words of locate, and asks again", async () => {
		const states: LinkState[] = [];
		const stream = createClient({ locate, limits: { retryFirstMs: 1, retryMaxMs: 1 } }).open(
			{ run: "run" },
			{ onRecords() {}, onState: (state) => void states.push(state) },
		);
		await until("it tried again", () => states.length > 3);
		stream.send({ type: "stop" });
		const waiting = states.filter(({ phase }) => phase === "waiting");
		expect(waiting[0]?.error?.message).toBe("no daemon is registered for team blue");
	});
});

it("says outside a browser that it needs the daemon's address", async () => {
	const { api, follow } = createClient({ token: "t" });
	const refusal = { code: "invalid", message: expect.stringMatching(/give the client the daemon's `url`/) };
	await expect(api.send("notes", { text: "hello" })).rejects.toMatchObject(refusal);
	await expect(follow({ run: "run_1" }).next()).rejects.toMatchObject(refusal);
});
