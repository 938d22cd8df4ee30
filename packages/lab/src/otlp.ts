/** A small OTLP receiver over HTTP: keeps the spans that it was sent. */

import { ok, serveFake } from "./http.ts";

export interface ReceivedSpan {
	traceId: string;
	spanId: string;
	parentSpanId?: string;
	name: string;
	startTimeUnixNano: string;
	endTimeUnixNano: string;
	status: { code?: number; message?: string };
	attributes: Record<string, unknown>;
	service: unknown;
}

export interface OtlpFake {
	/** Without `/v1/traces`. */
	url: string;
	spans: ReceivedSpan[];
	/** All that it was sent, as text. */
	bodies: string[];
	/** It takes requests and answers none. */
	isSilent: boolean;
	close(): Promise<void>;
}

interface Attribute {
	key: string;
	value: Record<string, unknown>;
}

interface Body {
	resourceSpans: {
		resource: { attributes: Attribute[] };
		scopeSpans: { spans: (Omit<ReceivedSpan, "attributes"> & { attributes: Attribute[] })[] }[];
	}[];
}

const fieldsOf = (attributes: Attribute[] = []): Record<string, unknown> =>
	Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

export async function createOtlpFake(): Promise<OtlpFake> {
	const { url, close } = await serveFake({
		name: () => undefined,
		refuse: () => ({ status: 500 }),
		async handle({ path, body }) {
			if (path !== "/v1/traces") return { status: 404 };
			if (fake.isSilent) return await new Promise<never>(() => {});
			fake.bodies.push(body.toString());
			for (const { resource, scopeSpans } of (JSON.parse(body.toString()) as Body).resourceSpans) {
				const service = fieldsOf(resource.attributes)["service.name"];
				const spans = scopeSpans.flatMap((scope) => scope.spans);
				fake.spans.push(...spans.map((span) => ({ ...span, attributes: fieldsOf(span.attributes), service })));
			}
			return ok({});
		},
	});
	const fake: OtlpFake = { url, spans: [], bodies: [], isSilent: false, close };
	return fake;
}
