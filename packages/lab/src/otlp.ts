/** A small OTLP receiver over HTTP: keeps the spans that it was sent. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

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
	const fake: OtlpFake = { url: "", spans: [], bodies: [], isSilent: false, close };
	const server = createServer((request, response) => {
		let body = "";
		request.setEncoding("utf8").on("data", (text: string) => {
			body += text;
		});
		request.on("end", () => {
			if (request.url !== "/v1/traces") return void response.writeHead(404).end();
			if (fake.isSilent) return;
			fake.bodies.push(body);
			for (const { resource, scopeSpans } of (JSON.parse(body) as Body).resourceSpans)
				for (const span of scopeSpans.flatMap(({ spans }) => spans))
					fake.spans.push({
						...span,
						attributes: fieldsOf(span.attributes),
						service: fieldsOf(resource.attributes)["service.name"],
					});
			response.writeHead(200, { "content-type": "application/json" }).end("{}");
		});
	});
	async function close() {
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
	}
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	return fake;
}
