/** Decisions written in a chat: `approve K7Q2`, `deny K7Q2 because …`, `answer K7Q2 …`. A bare "yes" never decides. Pure. */

export interface ChatCommand {
	verb: "approve" | "deny" | "answer";
	id: string;
	/** The text after the id. */
	rest: string;
}

/** The second and fourth characters of an id are digits, so that no ordinary sentence matches. */
const COMMAND = /^\s*(?:<?@\S+>?[,:]?\s+)?\/?(approve|deny|answer)\s+`?([a-z][2-9][a-z][2-9])`?(?:[\s:,]+([\s\S]*))?$/i;

export function chatCommandIn(text: string): ChatCommand | undefined {
	const found = COMMAND.exec(text);
	if (!found) return undefined;
	const [, verb, id, rest = ""] = found;
	return { verb: verb!.toLowerCase() as ChatCommand["verb"], id: id!.toUpperCase(), rest: rest.trim() };
}
