/** The names of one chat on Messages. */

import type { Target } from "@nexus-stream/adapter";

/** Messages shows one chat with a person, whatever service brings the messages: "iMessage;-;+1…", "any;-;+1…" and the number alone. */
export function chatNames({ to }: Target): readonly string[] {
	const [, kind, id] = /^\w+;([-+]);(.*)$/s.exec(to) ?? ["", "-", to];
	if (kind === "+") return [`+;${id}`];
	const person = (id ?? to).toLowerCase();
	return [person.includes("@") ? person : person.replace(/[\s().-]/g, "")];
}
