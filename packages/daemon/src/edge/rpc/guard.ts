/** Every method of every service behind one wrapper: its errors become statuses, and the end of its stream is what it says (Z7). */

import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import type { Log } from "@nexus-stream/protocol/log";
import { toConnectError } from "./errors.ts";
import { SERVING } from "./rpc.ts";

type HandlerResult = Promise<object> | AsyncIterable<object>;
/** A method as its feature wrote it. */
export type Implementation = (request: object, context: HandlerContext) => HandlerResult;
type Router = Pick<ConnectRouter, "service">;

/** `methods` gets every method without its wrapper, for callers that are not Connect. */
export function guarded(router: Router, methods: Map<DescMethod, Implementation>, log: Log): Router {
	const around: Router = {
		service(description, implementation) {
			const own = implementation as Readonly<Record<string, Implementation | undefined>>;
			const wrapped: Record<string, Implementation> = {};
			for (const method of description.methods) {
				const found = own[method.localName]?.bind(own);
				if (!found) continue;
				methods.set(method, found);
				wrapped[method.localName] = method.methodKind === "unary" ? unary(found, log) : streaming(found);
			}
			return router.service(description, wrapped as typeof implementation);
		},
	};
	return around;
}

const unary =
	(method: Implementation, log: Log): Implementation =>
	async (request, context) => {
		try {
			return await keptTime(method(request, context) as Promise<object>, context.signal);
		} catch (cause) {
			throw toConnectError(cause, log, context.signal);
		}
	};

/** Answers a caller as soon as its deadline passes or it is cut; the method keeps running without it. */
function keptTime<Answer>(answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const cut = () => reject(signal.reason as Error);
		signal.addEventListener("abort", cut, { once: true });
		if (signal.aborted) cut();
		Promise.resolve(answer)
			.then(resolve, reject)
			.finally(() => signal.removeEventListener("abort", cut));
	});
}

const streaming =
	(method: Implementation): Implementation =>
	(request, context) =>
		context.values.get(SERVING)!.stream.carry(() => method(request, context) as AsyncIterable<object>, context.signal);
