/** The messages of the page for failed requests. */

import { afterEach, expect, it, vi } from "vitest";
import { api } from "../../packages/web/src/app/api.ts";

afterEach(() => void vi.unstubAllGlobals());

const cut = () => new ReadableStream({ start: (controller) => controller.error(new TypeError("terminated")) });
const said = { error: { code: "busy", message: "Too many messages at once." } };

it.each<[string, () => Response | Promise<Response>, string]>([
	["nobody answers", () => Promise.reject(new TypeError("fetch failed")), "The daemon cannot be reached."],
	["an answer breaks off", () => new Response(cut()), "The daemon cannot be reached."],
	["a gateway answers", () => new Response("<html>", { status: 502 }), "The daemon cannot be reached."],
	["a portal answers", () => new Response("<html>"), "Something other than the daemon answered."],
	["a filter answers", () => new Response("<html>", { status: 403 }), "The request failed (HTTP 403)."],
	["the daemon says why", () => Response.json(said, { status: 429 }), said.error.message],
	["the daemon says why it cannot", () => Response.json(said, { status: 503 }), said.error.message],
])("%s", async (_when, answer, message) => {
	vi.stubGlobal("fetch", async () => answer());
	await expect(api.runs()).rejects.toMatchObject({ message });
});
