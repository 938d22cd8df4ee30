/** Requests to a webhook: the proof that one comes from the platform, and the answers that refuse it. */

import { sameSecret } from "./network.ts";
import type { WebhookAnswer, WebhookRequest } from "./session.ts";

export const refused = (status: number, body?: string): WebhookAnswer => ({ status, body, messages: [] });

/** The JSON of a POST, or the answer that refuses the request. `fault` says what is wrong with its proof. */
export function readPost<Payload>(
	request: WebhookRequest,
	fault: (request: WebhookRequest) => string | undefined,
	jsonOf = ({ body }: WebhookRequest) => body.toString("utf8"),
): { payload: Payload } | WebhookAnswer {
	if (request.method !== "POST") return refused(405);
	const wrong = fault(request);
	if (wrong !== undefined) return refused(401, wrong);
	try {
		return { payload: JSON.parse(jsonOf(request)) };
	} catch {
		return refused(400, "not JSON");
	}
}

/** An account without a secret takes none. */
export const secretFault = (given: string | null | undefined, secret: string, name: string): string | undefined =>
	secret !== "" && sameSecret(given ?? "", secret) ? undefined : `wrong ${name}`;
