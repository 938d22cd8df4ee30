/** The Cloud API of WhatsApp: plain HTTP calls to Meta's Graph. */

import { fetchJson } from "@nexus-stream/adapter/platform/json";
import { refusal } from "./faults.ts";

export type GraphApi = ReturnType<typeof createGraph>;

export function createGraph(apiUrl: string, token: string) {
	/** Returns the answer's body. Refusals are thrown in the words of all platforms. */
	async function request(call: string, path: string, init: RequestInit, signal?: AbortSignal) {
		const headers = { authorization: `Bearer ${token}`, ...(init.headers as Record<string, string>) };
		const answer = await fetchJson(call, `${apiUrl}/${path}`, { ...init, headers, signal });
		if (answer.status >= 300 || typeof answer.body !== "object" || answer.body === null) throw refusal(call, answer);
		return answer.body as Record<string, unknown>;
	}
	return {
		get: (call: string, path: string) => request(call, path, { method: "GET" }),
		post(call: string, path: string, body: object | FormData, signal?: AbortSignal) {
			if (body instanceof FormData) return request(call, path, { method: "POST", body }, signal);
			const headers = { "content-type": "application/json" };
			return request(call, path, { method: "POST", headers, body: JSON.stringify(body) }, signal);
		},
	};
}
