/** The Cloud API of WhatsApp: plain HTTP calls to Meta's Graph. */

import { fetchJson, type JsonAnswer } from "@nexus-stream/adapter/platform/json";
import { refusal } from "./faults.ts";

export const DEFAULT_API_URL = "https://graph.facebook.com/v23.0";

export interface GraphApi {
	/** The answer's body. Refusals are thrown in the words of all platforms. */
	get(call: string, path: string, signal?: AbortSignal): Promise<Record<string, unknown>>;
	post(call: string, path: string, body: object | FormData, signal?: AbortSignal): Promise<Record<string, unknown>>;
}

export function createGraph(apiUrl: string, token: string): GraphApi {
	async function request(call: string, path: string, init: RequestInit, signal?: AbortSignal) {
		const headers = { authorization: `Bearer ${token}`, ...(init.headers as Record<string, string>) };
		const params = { ...init, headers, ...(signal ? { signal } : {}) };
		const answer: JsonAnswer = await fetchJson(call, `${apiUrl}/${path}`, params);
		if (answer.status >= 300 || typeof answer.body !== "object" || answer.body === null) throw refusal(call, answer);
		return answer.body as Record<string, unknown>;
	}
	return {
		get: (call, path, signal) => request(call, path, { method: "GET" }, signal),
		post(call, path, body, signal) {
			if (body instanceof FormData) return request(call, path, { method: "POST", body }, signal);
			const headers = { "content-type": "application/json" };
			return request(call, path, { method: "POST", headers, body: JSON.stringify(body) }, signal);
		},
	};
}
