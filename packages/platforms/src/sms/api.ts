/** Twilio's SDK over Node's own fetch: another address for tests, a signal for every call, no retries, and refusals with their headers. */

import { fetchJson, foreignAnswer } from "@nexus-stream/adapter/platform/json";
import twilio from "twilio";
import { refusal } from "./faults.ts";

export type TwilioApi = ReturnType<typeof twilio>;

type HttpClient = NonNullable<NonNullable<Parameters<typeof twilio>[2]>["httpClient"]>;
type RequestParams = Parameters<HttpClient["request"]>[0];

export function createApi(sid: string, token: string, apiUrl: string, signal?: AbortSignal): TwilioApi {
	const request = async ({ method, uri, params, data }: RequestParams) => {
		const { pathname, search } = new URL(uri);
		const url = new URL(`${apiUrl}${pathname}${search}`);
		for (const [name, value] of fieldsOf(params)) url.searchParams.append(name, value);
		const authorization = `Basic ${Buffer.from(`${sid}:${token}`).toString("base64")}`;
		const body = data === undefined ? {} : { body: new URLSearchParams(fieldsOf(data)) };
		const init = { method, headers: { authorization, accept: "application/json" }, ...body };
		const call = `${method.toUpperCase()} ${pathname.split("/").at(-1)}`;
		const answer = await fetchJson(call, url, { ...init, signal });
		if (answer.status >= 300) throw refusal(call, answer);
		if (typeof answer.body !== "object" || answer.body === null) throw foreignAnswer(call, answer);
		return { statusCode: answer.status, body: answer.body, headers: answer.headers };
	};
	return twilio(sid, token, { httpClient: { request } as unknown as HttpClient });
}

const fieldsOf = (fields: object | null | undefined): [name: string, value: string][] =>
	Object.entries(fields ?? {}).flatMap(([name, value]) =>
		(Array.isArray(value) ? value : [value])
			.filter((each) => each !== undefined)
			.map((each): [string, string] => [name, String(each)]),
	);
