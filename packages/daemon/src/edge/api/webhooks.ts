/** Requests of platforms: anybody can send one, so what cannot be signed is refused unread, and what waits for an adapter is counted. */

import { NexusError } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import { inTime } from "../http/body.ts";
import type { Channels, EdgeDeps, EdgeLimits } from "../port.ts";
import { accountParams, get, type HandlersOf, post, type RequestContext, type RouteInput } from "./resource.ts";

const PATH = "/v1/webhooks/{channel}/{account}";
const webhook = {
	auth: false,
	params: accountParams,
	raw: true,
	answer: "*/*",
	errors: ["forbidden", "not_found", "too_large", "busy", "unavailable"],
} as const;

export const WEBHOOK_ROUTES = {
	getWebhook: get(PATH, "For platforms: how some of them verify an address. The adapter answers.", webhook),
	postWebhook: post(
		PATH,
		"For platforms: messages. The adapter checks the signature over the raw body and answers.",
		webhook,
	),
};

/** Headers that are about the connection to the adapter's side, not about what it says. */
const NOT_PASSED_ON = new Set(["connection", "content-length", "transfer-encoding", "keep-alive", "set-cookie"]);
const WEBHOOK_HEADERS = { "content-security-policy": "default-src 'none'; sandbox" };

export function webhookHandlers(
	{ channels: { outbound }, clock, log }: EdgeDeps,
	limits: EdgeLimits,
): HandlersOf<typeof WEBHOOK_ROUTES> {
	const intake = createIntake(limits, log);
	const bytesMax = Math.min(limits.bodyBytesMax, limits.webhookBodyBytesMax);
	const pass =
		(method: "GET" | "POST") =>
		async (
			{ params, body }: RouteInput<typeof WEBHOOK_ROUTES.postWebhook>,
			{ caller, headers, url }: RequestContext,
		) => {
			const { channel, account } = params;
			const head = { method, query: new URL(url).search.slice(1), headers: Object.fromEntries(headers) };
			outbound.admitWebhook(channel, account, head);
			const slot = intake.enter(`${channel}/${account}`, caller.address);
			try {
				const read = () => inTime(clock, limits.webhookBodyTimeoutMs, (signal) => body(bytesMax, slot.arrived, signal));
				const bytes = method === "GET" ? Buffer.alloc(0) : await read();
				return answerOf(await outbound.webhook(channel, account, { ...head, body: bytes.toString("base64") }));
			} finally {
				slot.leave();
			}
		};
	return { getWebhook: pass("GET"), postWebhook: pass("POST") };
}

function answerOf({ status, headers, body }: Awaited<ReturnType<Channels["outbound"]["webhook"]>>): Response {
	const said = Object.entries(headers).map(([name, value]): [string, string] => [name.toLowerCase(), value]);
	const kept = said.filter(([name]) => !NOT_PASSED_ON.has(name));
	const hasBody = status !== 204 && status !== 304;
	return new Response(hasBody ? body : null, {
		status,
		// An adapter's answer is data: nothing in it may run on the daemon's origin.
		headers: { "content-type": "text/plain; charset=utf-8", ...Object.fromEntries(kept), ...WEBHOOK_HEADERS },
	});
}

interface Load {
	requests: number;
	bytes: number;
}

/**
 * Counts what waits, of each account and of all together; throws at once when one more would be too much. Only bytes that are here
 * count: a length is easily declared. One address gets a part of an account's slots, so that it cannot keep the platform out.
 */
function createIntake(limits: EdgeLimits, log: Log) {
	const all: Load = { requests: 0, bytes: 0 };
	/** By account, and by account and client, for as long as they have requests. */
	const loads = new Map<string, Load>();
	const loadOf = (key: string): Load => loads.get(key) ?? { requests: 0, bytes: 0 };
	/** Logged once, and again only after a time without refusals: a flood of requests must not flood the log. */
	let refusing = false;
	const refuse = (account: string, code: "busy" | "unavailable", words: string): never => {
		if (!refusing) log.warn({ account, requests: all.requests, bytes: all.bytes }, words);
		refusing = true;
		throw new NexusError(code, words);
	};
	return {
		enter(account: string, address: string) {
			const client = `${account} ${address}`;
			const [one, own] = [loadOf(client), loadOf(account)];
			let held = 0;
			const charge = (requests: number, bytes: number) => {
				const isOver = (load: Load, requestsMax: number, bytesMax: number) =>
					load.requests + requests > requestsMax || load.bytes + bytes > bytesMax;
				if (isOver(one, limits.webhookRequestsPerClientMax, limits.webhookBytesPerClientMax))
					refuse(account, "busy", "too many webhook requests from this address wait for the account's adapter");
				if (isOver(own, limits.webhookRequestsPerAccountMax, limits.webhookBytesPerAccountMax))
					refuse(account, "busy", "too many webhook requests of this account wait for its adapter");
				if (isOver(all, limits.webhookRequestsMax, limits.webhookBytesMax))
					refuse(account, "unavailable", "too many webhook requests wait for their adapters");
				held += bytes;
				for (const load of [one, own, all]) add(load, requests, bytes);
			};
			charge(1, 0);
			loads.set(client, one).set(account, own);
			return {
				/** Charges bytes of the body. Throws when they are too many. */
				arrived: (bytes: number) => charge(0, bytes),
				leave(): void {
					for (const load of [one, own, all]) add(load, -1, -held);
					for (const key of [client, account]) if (loads.get(key)?.requests === 0) loads.delete(key);
					if (all.requests === 0) refusing = false;
				},
			};
		},
	};
}

function add(load: Load, requests: number, bytes: number): void {
	load.requests += requests;
	load.bytes += bytes;
}
