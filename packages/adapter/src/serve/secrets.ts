/** An account's secrets stay out of what people read: an SDK's error may quote the address that it called, token included. */

import type { Account } from "../platform/platform.ts";
import type { AdapterInfo } from "../port.ts";

export type Redact = (text: string) => string;

/** A shorter one would be found in ordinary words. */
const SECRET_CHARS_MIN = 6;

/** Secrets as they stand, in an address, and in a JSON text. */
export function createRedactor({ settings }: AdapterInfo, account: Account): Redact {
	const values = settings.flatMap(({ name, secret }) => (secret ? [account.settings[name] ?? ""] : []));
	const spellings = values
		.filter((value) => value.length >= SECRET_CHARS_MIN)
		.flatMap((value) => [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)])
		.toSorted((a, b) => b.length - a.length);
	return (text) => spellings.reduce((rest, spelling) => rest.replaceAll(spelling, "[secret]"), text);
}

/** What a line says about a failure. */
const TOLD = ["error", "detail"] as const;

export function withoutSecrets(line: object, redact: Redact): object {
	const told = TOLD.flatMap((field) => {
		const value = (line as Record<string, unknown>)[field];
		return typeof value === "string" ? [[field, redact(value)]] : [];
	});
	return told.length === 0 ? line : { ...line, ...Object.fromEntries(told) };
}
