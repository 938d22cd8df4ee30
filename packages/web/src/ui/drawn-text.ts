/**
 * Text as it may be drawn: with a bounded number of marks on one character. A browser orders all marks of a character before it lays them
 * out, which takes the square of their number: 100,000 of them on one letter keep a page busy for a minute. Only what is drawn is
 * shortened; what is stored, copied and verified stays exact.
 */

import type { Options, VNode } from "preact";

/** As in Unicode's stream-safe text (UAX #15): no language puts more on one character. */
const MARKS_PER_CHARACTER_MAX = 30;

const MARK = "[\\p{M}\\p{Emoji_Modifier}\\u200c\\u200d]";
const TOO_MANY = new RegExp(`(${MARK}{${MARKS_PER_CHARACTER_MAX}})${MARK}+`, "gu");

export const drawnText = (text: string): string =>
	text.length > MARKS_PER_CHARACTER_MAX ? text.replace(TOO_MANY, "$1") : text;

/** The attributes that a browser shows as text. */
const SHOWN = ["title", "alt", "placeholder", "aria-label"] as const;

/** Everything that Preact draws passes here, so no view can forget it. What a person types stays as it is. */
export function drawSafely(options: Options): void {
	const before = options.vnode;
	options.vnode = (vnode) => {
		before?.(vnode);
		const { type, props } = vnode as VNode<Record<string, unknown>> | { type: null; props: unknown };
		if (type === null) {
			if (typeof props === "string") (vnode as { props: unknown }).props = drawnText(props);
		} else if (typeof type === "string") {
			const given = props as Record<string, unknown>;
			for (const name of SHOWN) {
				const value = given[name];
				if (typeof value === "string") given[name] = drawnText(value);
			}
		}
	};
}
