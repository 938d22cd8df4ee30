/** The Events API and interactivity: requests that Slack signs. */

import { createHmac } from "node:crypto";
import type { WebhookAnswer, WebhookRequest } from "@nexus-stream/adapter";
import { sameSecret } from "@nexus-stream/adapter/platform/network";
import { refused } from "@nexus-stream/adapter/platform/webhook";

/** A signature that is older, or that far ahead, is a copy of an earlier request. */
export const REPLAY_WINDOW_MS = 5 * 60_000;

/** The verified payload, or the answer that refuses the request. */
export function openRequest(
	request: WebhookRequest,
	signingSecret: string,
	now: number,
): { payload: unknown } | WebhookAnswer {
	if (request.method !== "POST") return refused(405);
	const refusal = refusalOf(request, signingSecret, now);
	if (refusal !== undefined) return refused(401, refusal);
	let payload: { type?: unknown; challenge?: unknown };
	try {
		payload = JSON.parse(jsonOf(request));
	} catch {
		return refused(400, "not JSON");
	}
	if (payload?.type === "url_verification") {
		return { status: 200, headers: { "content-type": "text/plain" }, body: String(payload.challenge), messages: [] };
	}
	return payload?.type === "event_callback" || payload?.type === "block_actions"
		? { payload }
		: { status: 200, messages: [] };
}

/** Interactivity sends a form with one field. */
function jsonOf({ headers, body }: WebhookRequest): string {
	const text = body.toString("utf8");
	const isForm = headers["content-type"]?.startsWith("application/x-www-form-urlencoded");
	return isForm ? (new URLSearchParams(text).get("payload") ?? "") : text;
}

function refusalOf({ headers, body }: WebhookRequest, secret: string, now: number): string | undefined {
	if (secret === "") return "this account has no signing_secret";
	const stamp = headers["x-slack-request-timestamp"] ?? "";
	if (!/^\d{1,12}$/.test(stamp)) return "no timestamp";
	const expected = `v0=${createHmac("sha256", secret).update(`v0:${stamp}:`).update(body).digest("hex")}`;
	if (!sameSecret(headers["x-slack-signature"] ?? "", expected)) return "wrong signature";
	return Math.abs(now - Number(stamp) * 1000) > REPLAY_WINDOW_MS ? "the request is too old" : undefined;
}
