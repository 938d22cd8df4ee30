/** Every method of every service behind one wrapper: its errors become statuses, and the end of its stream is what it says (Z7). */

import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Log } from "@nexus-stream/protocol/log";
import { toConnectError } from "./errors.ts";
import { SERVING } from "./rpc.ts";

type HandlerResult = Promise<object> | AsyncIterable<object>;
type Method = (request: object, context: HandlerContext) => HandlerResult;

export function guarded(router: ConnectRouter, log: Log): Pick<ConnectRouter, "service"> {
	const around: Pick<ConnectRouter, "service"> = {
		service(description, methods) {
			router.service(description, guardAll(description, methods, log));
			return router;
		},
	};
	return around;
}

function guardAll<S extends DescService>(
	{ methods: known }: S,
	methods: Partial<ServiceImpl<S>>,
	log: Log,
): Partial<ServiceImpl<S>> {
	const own = methods as Readonly<Record<string, Method | undefined>>;
	const around: Record<string, Method> = {};
	for (const { localName, methodKind } of known) {
		const method = own[localName];
		if (!method) continue;
		around[localName] = methodKind === "unary" ? unary(method.bind(own), log) : streaming(method.bind(own));
	}
	return around as Partial<ServiceImpl<S>>;
}

const unary =
	(method: Method, log: Log): Method =>
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
	(method: Method): Method =>
	(request, context) =>
		context.values.get(SERVING)!.stream.carry(() => method(request, context) as AsyncIterable<object>, context.signal);
