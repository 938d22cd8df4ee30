/**
 * Rewrites a provider's stream for the libraries that read it: they search their whole buffer whenever a piece of an event comes, take two
 * tool calls with one id for one call, and rely on fields that compatible servers leave out.
 */

/** A longer event ends the call: it would be looked through, parsed and shown in one turn of the loop. */
export const EVENT_BYTES_MAX = 2 * 1024 * 1024;

type Fetch = typeof globalThis.fetch;

/** `repairOf` makes the repair of one answer. */
export const repairedFetch =
	(fetch: Fetch = globalThis.fetch, repairOf: () => LineRepair = () => new CallIds()): Fetch =>
	async (...request) => {
		const response = await fetch(...request);
		if (!response.ok || response.body === null) return response;
		const { status, statusText, headers } = response;
		return new Response(repairedEvents(response.body, repairOf()), { status, statusText, headers });
	};

/** The events of a stream, each in one piece and repaired. */
function repairedEvents(body: ReadableStream<Uint8Array>, repair: LineRepair): ReadableStream<Uint8Array> {
	const reader = body.getReader();
	const events = new WholeEvents();
	return new ReadableStream({
		async pull(to) {
			for (;;) {
				const { done, value } = await reader.read();
				const whole = done ? events.rest() : events.push(value);
				if (whole.length > 0) to.enqueue(repaired(whole, repair));
				if (done) to.close();
				if (done || whole.length > 0) return;
			}
		},
		cancel: (reason) => reader.cancel(reason),
	});
}

const ENDS = ["\n\n", "\r\r", "\r\n\r\n"];
const END_BYTES_MAX = 4;
const NOTHING = Buffer.alloc(0);

/** Holds back the beginning of an event until its end is there. */
class WholeEvents {
	#held: Uint8Array[] = [];
	#heldBytes = 0;
	/** The last bytes that are held: an end may come in two pieces. */
	#tail: Uint8Array = NOTHING;

	/** The complete events so far. */
	push(piece: Uint8Array): Uint8Array {
		const end = this.#endIn(piece);
		if (end === 0) {
			this.#hold(piece);
			return NOTHING;
		}
		const whole =
			this.#heldBytes === 0 ? piece.subarray(0, end) : Buffer.concat([...this.#held, piece.subarray(0, end)]);
		this.#clear();
		if (end < piece.length) this.#hold(piece.subarray(end));
		return whole;
	}

	rest(): Uint8Array {
		const rest = Buffer.concat(this.#held);
		this.#clear();
		return rest;
	}

	/** Behind the last event that ends in the piece; 0 when none does. */
	#endIn(piece: Uint8Array): number {
		const seen = Buffer.concat([this.#tail, piece.subarray(0, END_BYTES_MAX)]);
		const whole = bufferOf(piece);
		const inPiece = Math.max(...ENDS.map((end) => endOf(whole, end)));
		const across = Math.max(...ENDS.map((end) => endOf(seen, end))) - this.#tail.length;
		return Math.max(inPiece, across, 0);
	}

	#hold(piece: Uint8Array): void {
		this.#heldBytes += piece.length;
		if (this.#heldBytes > EVENT_BYTES_MAX)
			throw new Error(`the provider sent an event of more than ${EVENT_BYTES_MAX} bytes; it was not read to its end`);
		this.#held.push(piece);
		this.#tail = Buffer.concat([this.#tail, piece.subarray(-END_BYTES_MAX)]).subarray(1 - END_BYTES_MAX);
	}

	#clear(): void {
		this.#held = [];
		this.#heldBytes = 0;
		this.#tail = NOTHING;
	}
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
	Buffer.from(buffer, byteOffset, byteLength);

const endOf = (bytes: Buffer, end: string): number => {
	const at = bytes.lastIndexOf(end, undefined, "latin1");
	return at < 0 ? -1 : at + end.length;
};

/** Changes single lines of an answer. */
interface LineRepair {
	/** Lines without it are right. */
	readonly mark: string;
	/** The line as the library needs it; undefined when it is right as it is. */
	changed(line: string): string | undefined;
}

function repaired(events: Uint8Array, repair: LineRepair): Uint8Array {
	const bytes = bufferOf(events);
	if (!bytes.includes(repair.mark, 0, "latin1")) return events;
	let isChanged = false;
	const lines = bytes.toString().split("\n");
	for (const [n, line] of lines.entries()) {
		const changed = line.includes(repair.mark) ? repair.changed(line) : undefined;
		if (changed === undefined) continue;
		isChanged = true;
		lines[n] = changed;
	}
	return isChanged ? Buffer.from(lines.join("\n")) : events;
}

interface CallDelta {
	index?: unknown;
	id?: unknown;
}

/** Ids of the tool calls in one answer: where a model gives two of them one id, the second gets its own. */
class CallIds implements LineRepair {
	readonly mark = '"tool_calls"';
	readonly #indexes = new Map<string, number>();

	changed(line: string): string | undefined {
		const at = line.indexOf("{");
		const chunk = jsonIn<Chunk>(line.slice(at));
		const calls = chunk?.choices?.flatMap((choice) => choice?.delta?.tool_calls ?? []) ?? [];
		let isChanged = false;
		for (const call of calls) {
			const id = this.#idOf(call);
			if (id === undefined || id === call.id) continue;
			call.id = id;
			isChanged = true;
		}
		return isChanged ? line.slice(0, at) + JSON.stringify(chunk) : undefined;
	}

	#idOf({ index, id }: CallDelta): string | undefined {
		if (typeof index !== "number" || typeof id !== "string" || id === "") return undefined;
		let own = id;
		for (let n = 2; (this.#indexes.get(own) ?? index) !== index; n++) own = `${id}_${n}`;
		this.#indexes.set(own, index);
		return own;
	}
}

interface Chunk {
	choices?: ({ delta?: { tool_calls?: CallDelta[] } } | null)[];
}

interface MessageStart {
	type?: unknown;
	message?: { usage?: object | null };
}

/** The usage in the first event of Anthropic's wire: servers that copy it may leave it out, and the library takes it for granted. */
export const FIRST_USAGE: LineRepair = {
	mark: '"message_start"',
	changed(line) {
		const at = line.indexOf("{");
		const event = jsonIn<MessageStart>(line.slice(at));
		if (event?.type !== "message_start" || !event.message || event.message.usage) return undefined;
		return line.slice(0, at) + JSON.stringify({ ...event, message: { ...event.message, usage: {} } });
	},
};

/** Unreadable events pass unchanged: the library reports them. */
function jsonIn<Event>(text: string): Event | undefined {
	try {
		return JSON.parse(text) as Event;
	} catch {
		return undefined;
	}
}
