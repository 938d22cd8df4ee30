/** A service as typed calls: unary ones as they are, streams as readers that know how they close. */

import type {
	DescMethod,
	DescMethodServerStreaming,
	DescMethodUnary,
	DescService,
	MessageInitShape,
	MessageShape,
} from "@bufbuild/protobuf";
import { type CallOptions, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { type CloseMode, NexusError, STREAM_PROCEDURES } from "@nexus-stream/protocol";
import { type CallContext, type CallTarget, createTries, read } from "./read.ts";
import { positionOf, type ResumeFields } from "./resume-position.ts";

export interface RuntimeRequestOptions {
	/** Ends the call, which then throws the signal's reason. A run or a job continues in the daemon. */
	signal?: AbortSignal;
	/** Such as `x-nexus-user-token`. */
	headers?: HeadersInit;
}

export type Calls<Service extends DescService> = {
	[Method in keyof Service["method"]]: Service["method"][Method] extends DescMethodUnary<infer Input, infer Output>
		? (request: MessageInitShape<Input>, options?: RuntimeRequestOptions) => Promise<MessageShape<Output>>
		: Service["method"][Method] extends DescMethodServerStreaming<infer Input, infer Output>
			? (
					request: MessageInitShape<Input>,
					options?: RuntimeRequestOptions,
				) => AsyncGenerator<MessageShape<Output>, void, undefined>
			: never;
};

/** A Connect client whose methods are looked up by name. */
type AnyCall = (request: object, options: CallOptions) => Promise<object> & AsyncIterable<never>;

export function createCalls<Service extends DescService>(
	service: Service,
	transport: Transport,
	line: CallContext & { reword(error: ConnectError): Error },
	authorization: Record<string, string>,
): Calls<Service> {
	const client = createClient(service, transport) as unknown as Record<string, AnyCall>;
	const calls = service.methods.map((method) => {
		const call = client[method.localName]!;
		const headersOf = ({ headers }: RuntimeRequestOptions) => {
			const all = new Headers(headers);
			for (const [name, value] of Object.entries(authorization)) if (!all.has(name)) all.set(name, value);
			return all;
		};
		if (method.methodKind !== "unary") {
			const read = stream(method, call)(line, headersOf);
			return [method.localName, (...given: Parameters<typeof read>) => rewording(read(...given), line.reword)];
		}
		const ask = unary(method, call)(line, headersOf);
		const reworded = (cause: unknown): never => {
			throw reword(cause, line.reword);
		};
		return [method.localName, (...given: Parameters<typeof ask>) => ask(...given).catch(reworded)];
	});
	return Object.fromEntries(calls) as Calls<Service>;
}

const reword = (cause: unknown, by: (error: ConnectError) => Error): unknown =>
	cause instanceof ConnectError ? by(cause) : cause;

async function* rewording<Message>(
	messages: AsyncGenerator<Message, void, undefined>,
	by: (error: ConnectError) => Error,
): AsyncGenerator<Message, void, undefined> {
	try {
		yield* messages;
	} catch (cause) {
		throw reword(cause, by);
	}
}

type HeadersOf = (options: RuntimeRequestOptions) => Headers;

const hasField = (method: DescMethod, name: string): boolean =>
	method.input.fields.some((field) => field.localName === name);

/** An idempotency key: the daemon executes a repeated call once, so the client may retry a call with an unknown outcome (Z15). */
const withKey = (method: DescMethod, request: ResumeFields): ResumeFields =>
	hasField(method, "idempotencyKey") && !request.idempotencyKey && !request.runId
		? { ...request, idempotencyKey: crypto.randomUUID() }
		: request;

const procedureOf = (method: DescMethod): string => `${method.parent.typeName}/${method.name}`;

/** Once, unless a key makes it safe to call again after a cut. */
const unary =
	(method: DescMethod, call: AnyCall) =>
	(line: CallContext, headersOf: HeadersOf) =>
	async (given: ResumeFields, options: RuntimeRequestOptions = {}): Promise<object> => {
		const request = withKey(method, given);
		const signal = AbortSignal.any([line.closed, ...(options.signal ? [options.signal] : [])]);
		const tries = createTries(line, { procedure: procedureOf(method), closes: "unary" });
		for (;;) {
			signal.throwIfAborted();
			try {
				const answer = await call(request, { signal, headers: headersOf(options) });
				tries.up();
				return answer;
			} catch (cause) {
				signal.throwIfAborted();
				const error = ConnectError.from(cause);
				if (!request.idempotencyKey) throw error;
				await tries.again(error, signal);
			}
		}
	};

function modeOf(procedure: string): CloseMode {
	const row = (STREAM_PROCEDURES as Readonly<Record<string, { closes: CloseMode }>>)[procedure];
	if (!row) throw new NexusError("internal", `${procedure} is not in the table of close modes`);
	return row.closes;
}

function stream(method: DescMethod, call: AnyCall) {
	const procedure = procedureOf(method);
	const target: CallTarget & { closes: CloseMode } = { procedure, closes: modeOf(procedure) };
	const isLog = hasField(method, "after");
	return (line: CallContext, headersOf: HeadersOf) =>
		(given: ResumeFields, options: RuntimeRequestOptions = {}) => {
			const request = withKey(method, given);
			return read<never>(
				line,
				target,
				positionOf(target.closes, isLog, request),
				(fields, attempt) => call(resumed(request, fields), { ...attempt, headers: headersOf(options) }),
				options.signal,
			);
		};
}

/** A run that is read again needs no scenario. */
function resumed(request: ResumeFields & { scenario?: unknown }, fields: ResumeFields): ResumeFields {
	const { after: _, scenario, ...rest } = request;
	const isReading = fields.runId !== undefined && fields.runId !== "";
	return { ...rest, ...(scenario !== undefined && !isReading && { scenario }), ...fields };
}
