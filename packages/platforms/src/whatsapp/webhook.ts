/** Meta's webhook: the address is verified by a challenge, every request by a signature over its bytes. */

import { createHmac } from "node:crypto";
import type { WebhookAnswer, WebhookRequest } from "@nexus-stream/adapter";
import { sameSecret } from "@nexus-stream/adapter/platform/network";

export interface WebhookSecrets {
	/** The app's: signs requests. */
	appSecret: string;
	/** Ours: said when the address is verified. */
	verifyToken: string;
}

/** What was said, or what to answer instead. */
export function openRequest(
	request: WebhookRequest,
	{ appSecret, verifyToken }: WebhookSecrets,
): { payload: unknown } | WebhookAnswer {
	if (request.method === "GET") return verify(request.query, verifyToken);
	if (request.method !== "POST") return { status: 405, messages: [] };
	if (appSecret === "") return { status: 401, body: "this account has no app_secret", messages: [] };
	const expected = `sha256=${createHmac("sha256", appSecret).update(request.body).digest("hex")}`;
	if (!sameSecret(request.headers["x-hub-signature-256"] ?? "", expected)) {
		return { status: 401, body: "wrong signature", messages: [] };
	}
	try {
		return { payload: JSON.parse(request.body.toString("utf8")) };
	} catch {
		return { status: 400, body: "not JSON", messages: [] };
	}
}

function verify(query: URLSearchParams, verifyToken: string): WebhookAnswer {
	const known = verifyToken !== "" && sameSecret(query.get("hub.verify_token") ?? "", verifyToken);
	if (query.get("hub.mode") !== "subscribe" || !known) return { status: 403, body: "wrong verify token", messages: [] };
	const body = query.get("hub.challenge") ?? "";
	return { status: 200, headers: { "content-type": "text/plain" }, body, messages: [] };
}
