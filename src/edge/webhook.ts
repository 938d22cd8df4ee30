/** Requests of platforms: anybody can send one, so what cannot be signed is refused unread, and what waits for an adapter is counted. */

import { NexusError } from "../protocol/protocol.ts";
import type { Log } from "../std/log.ts";
import type { Context, Handlers } from "./handler.ts";
import type { Channels, EdgeLimits } from "./port.ts";
import type { Input } from "./routes.ts";

/** Headers that are about the connection to the adapter's side, not about what it says. */
const NOT_PASSED_ON = new Set(["connection", "content-length", "transfer-encoding", "keep-alive", "set-cookie"]);
const WEBHOOK_HEADERS = { "content-security-policy": "default-src 'none'; sandbox" };

export function webhookHandlers(needed: () => Channels, limits: EdgeLimits, log: Log) {
	const intake = createIntake(limits, log);
	const bytesMax = Math.min(limits.bodyBytesMax, limits.webhookBodyBytesMax);
	const pass =
		(method: "GET" | "POST") =>
		async ({ params, body }: Pick<Input<"postWebhook">, "params" | "body">, { headers, url }: Context) => {
			const { outbound } = needed();
			const { channel, account } = params;
			const head = { method, query: new URL(url).search.slice(1), headers: Object.fromEntries(headers) };
			outbound.admitWebhook(channel, account, head);
			// A length that nobody declared may become the largest one.
			const declared = method === "GET" ? 0 : Number(headers.get("content-length") ?? bytesMax);
			const leave = intake.enter(`${channel}/${account}`, Math.min(declared, bytesMax));
			try {
				const bytes = method === "GET" ? Buffer.alloc(0) : await body(bytesMax);
				return answerOf(await outbound.webhook(channel, account, { ...head, body: bytes.toString("base64") }));
			} finally {
				leave();
			}
		};
	return { getWebhook: pass("GET"), postWebhook: pass("POST") } satisfies Partial<Handlers>;
}

function answerOf({ status, headers, body }: Awaited<ReturnType<Channels["outbound"]["webhook"]>>): Response {
	const said = Object.entries(headers).map(([name, value]): [string, string] => [name.toLowerCase(), value]);
	const kept = said.filter(([name]) => !NOT_PASSED_ON.has(name));
	const hasBody = status !== 204 && status !== 304;
	return new Response(hasBody ? body : null, {
		status,
		// What an adapter says is data: nothing in it may run on the daemon's origin.
		headers: { "content-type": "text/plain; charset=utf-8", ...Object.fromEntries(kept), ...WEBHOOK_HEADERS },
	});
}

interface Load {
	requests: number;
	bytes: number;
}

/** Counts what waits, of each account and of all together; throws at once when one more would be too much. */
function createIntake(limits: EdgeLimits, log: Log) {
	const { webhookRequestsMax, webhookRequestsPerAccountMax, webhookBytesMax, webhookBytesPerAccountMax } = limits;
	const all: Load = { requests: 0, bytes: 0 };
	const accounts = new Map<string, Load>();
	/** Said once, and again only after a time without refusals: whoever floods requests does not flood the log. */
	let refusing = false;
	const refuse = (account: string, code: "busy" | "unavailable", words: string): never => {
		if (!refusing) log.warn({ account, requests: all.requests, bytes: all.bytes }, words);
		refusing = true;
		throw new NexusError(code, words);
	};
	return {
		enter(account: string, bytes: number): () => void {
			const own = accounts.get(account) ?? { requests: 0, bytes: 0 };
			if (own.requests >= webhookRequestsPerAccountMax || own.bytes + bytes > webhookBytesPerAccountMax)
				refuse(account, "busy", "too many webhook requests of this account wait for its adapter");
			if (all.requests >= webhookRequestsMax || all.bytes + bytes > webhookBytesMax)
				refuse(account, "unavailable", "too many webhook requests wait for their adapters");
			const count = (load: Load, sign: 1 | -1) => {
				load.requests += sign;
				load.bytes += sign * bytes;
			};
			accounts.set(account, own);
			count(own, 1);
			count(all, 1);
			return () => {
				count(own, -1);
				count(all, -1);
				if (own.requests === 0) accounts.delete(account);
				if (all.requests === 0) refusing = false;
			};
		},
	};
}
