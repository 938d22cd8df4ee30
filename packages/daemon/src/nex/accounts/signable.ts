/** Whether a webhook request can be signed at all: told from what its adapter's `info` says, before the body is read. */

import type { AdapterInfo } from "@nexus-stream/adapter/host";
import { NexusError } from "@nexus-stream/protocol";
import type { WireWebhookRequest } from "./monitor-port.ts";

/** An adapter that has not said yet what it is gets every request. Throws `not_found` or `forbidden`. */
export function checkSignable(
	channel: string,
	info: AdapterInfo | undefined,
	{ method, query, headers }: Omit<WireWebhookRequest, "body">,
): void {
	if (!info) return;
	if (!info.supports.includes("webhook")) throw new NexusError("not_found", `${channel} has no webhook.`);
	// Some platforms verify an address by a GET that carries no signature.
	if (method !== "POST") return;
	const { requiredHeaders = [], requiredQuery = [] } = info.webhook ?? {};
	const given = new URLSearchParams(query);
	const lacks =
		requiredHeaders.some((name) => !headers[name.toLowerCase()]) || requiredQuery.some((name) => !given.get(name));
	if (lacks) throw new NexusError("forbidden", "The request carries no signature.");
}
