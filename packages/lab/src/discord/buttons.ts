/** Buttons of the fake Discord: pressing them, and the answers to a press, which need no token but the press's own. */

import type { FakeReply, FakeRequest } from "../http.ts";

interface Component {
	type: number;
	label?: string;
	custom_id?: string;
	components?: Component[];
}

const ROWS_MAX = 5;
const ROW_BUTTONS_MAX = 5;
const DATA_CHARS_MAX = 100;
const LABEL_CHARS_MAX = 80;

/** The buttons of a message, or what is wrong with them. */
export function readComponents(given: unknown): Component[] | { error: string } {
	const rows = (given ?? []) as Component[];
	if (rows.length > ROWS_MAX) return { error: "BASE_TYPE_BAD_LENGTH: components" };
	for (const { components = [] } of rows) {
		if (components.length === 0 || components.length > ROW_BUTTONS_MAX) return { error: "BASE_TYPE_BAD_LENGTH: row" };
		for (const { label = "", custom_id = "" } of components) {
			if (custom_id === "" || custom_id.length > DATA_CHARS_MAX) return { error: "BASE_TYPE_BAD_LENGTH: custom_id" };
			if (label === "" || label.length > LABEL_CHARS_MAX) return { error: "BASE_TYPE_BAD_LENGTH: label" };
		}
	}
	return rows.flatMap(({ components = [] }) => components);
}

interface Press {
	token: string;
	deferred: boolean;
	confirmed: PromiseWithResolvers<void>;
	notes: string[];
}

export interface Interactions {
	begin(id: string): { token: string; confirmed: Promise<void>; notes: readonly string[] };
	/** Undefined: the request is not about a press. */
	handle(request: FakeRequest): FakeReply | undefined;
}

const CALLBACK = /^\/api\/v10\/interactions\/(\d+)\/([\w-]+)\/callback$/;
const FOLLOW_UP = /^\/api\/v10\/webhooks\/(\d+)\/([\w-]+)$/;

export function createInteractions(): Interactions {
	const presses = new Map<string, Press>();
	const gone = { status: 404, body: { code: 10062, message: "Unknown interaction" } };

	function callback(token: string, { type }: { type?: unknown }): FakeReply {
		const press = presses.get(token);
		if (!press) return gone;
		if (press.deferred) {
			return { status: 400, body: { code: 40060, message: "Interaction has already been acknowledged." } };
		}
		if (type !== 6) return { status: 400, body: { code: 50035, message: "Invalid Form Body" } };
		press.deferred = true;
		press.confirmed.resolve();
		return { status: 204 };
	}

	function followUp(token: string, { content, flags }: { content?: unknown; flags?: unknown }): FakeReply {
		const press = presses.get(token);
		if (!press?.deferred) return gone;
		press.notes.push(`${flags === 64 ? "" : "everybody reads: "}${String(content)}`);
		return { status: 200, body: { id: "1", content } };
	}

	return {
		begin(id) {
			const press = { token: `press-${id}`, deferred: false, confirmed: Promise.withResolvers<void>(), notes: [] };
			presses.set(press.token, press);
			return { token: press.token, confirmed: press.confirmed.promise, notes: press.notes };
		},
		handle({ path, method, json }) {
			if (method !== "POST") return undefined;
			const called = CALLBACK.exec(path)?.[2];
			if (called !== undefined) return callback(called, json);
			const followed = FOLLOW_UP.exec(path)?.[2];
			return followed === undefined ? undefined : followUp(followed, json);
		},
	};
}
