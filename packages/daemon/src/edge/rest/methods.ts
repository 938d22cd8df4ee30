/** The methods of the services as they are written, for callers that are not Connect. */

import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";

export type Implementation = (request: Message, context: HandlerContext) => unknown;

export interface Methods {
	/** Undefined: the method is not implemented. */
	of(method: DescMethod): Implementation | undefined;
}

type Router = Pick<ConnectRouter, "service">;

/** A router that passes every service on, and remembers its methods. */
export function remembering(router: Router): { router: Router; methods: Methods } {
	const known = new Map<DescMethod, Implementation>();
	const around: Router = {
		service(description, implementation) {
			const own = implementation as Readonly<Record<string, Implementation | undefined>>;
			for (const method of description.methods) {
				const found = own[method.localName];
				if (found) known.set(method, found.bind(own));
			}
			return router.service(description, implementation);
		},
	};
	return { router: around, methods: { of: (method) => known.get(method) } };
}
