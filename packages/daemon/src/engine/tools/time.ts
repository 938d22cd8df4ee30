/** The time, in the zone that is asked for. */

import type { Tool } from "./port.ts";
import { textResult } from "./registry.ts";

export const timeTool = (now: () => number): Tool => ({
	name: "time",
	description: "The current date and time in a time zone.",
	parameters: {
		type: "object",
		properties: { zone: { type: "string", description: "An IANA name such as Europe/Berlin; UTC when left out." } },
		additionalProperties: false,
	},
	execute: async ({ zone = "UTC" }) => textResult(timeIn(zone as string, now())),
});

/** `2026-03-29T14:05:09+02:00, Sunday (Europe/Berlin)` */
export function timeIn(zone: string, now: number): string {
	const field = (options: Intl.DateTimeFormatOptions, locale = "en-CA"): string => {
		try {
			return new Intl.DateTimeFormat(locale, { timeZone: zone, ...options }).format(now);
		} catch (cause) {
			throw new Error(`unknown time zone "${zone}": use an IANA name such as Europe/Berlin`, { cause });
		}
	};
	const date = field({ year: "numeric", month: "2-digit", day: "2-digit" });
	const clock = field({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
	// "GMT+02:00"; some builds write plain "GMT" for zero.
	const offset = field({ timeZoneName: "longOffset" }, "en-US").split("GMT")[1] || "+00:00";
	return `${date}T${clock}${offset}, ${field({ weekday: "long" })} (${zone})`;
}
