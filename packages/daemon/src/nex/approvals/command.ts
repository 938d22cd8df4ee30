/** How a decision is written in a chat: `approve K7Q2`, `deny K7Q2 because …`, `answer K7Q2 …`. Never a bare "yes". Pure. */

export interface ChatCommand {
	verb: "approve" | "deny" | "answer";
	id: string;
	/** What follows the id. */
	rest: string;
}

/** The id has a digit in second and fourth place: no sentence that is meant for the agent looks like it. */
const COMMAND = /^\s*(?:<?@\S+>?[,:]?\s+)?\/?(approve|deny|answer)\s+`?([a-z][2-9][a-z][2-9])`?(?:[\s:,]+([\s\S]*))?$/i;

export function chatCommandIn(text: string): ChatCommand | undefined {
	const found = COMMAND.exec(text);
	if (!found) return undefined;
	const [, verb, id, rest = ""] = found;
	return { verb: verb!.toLowerCase() as ChatCommand["verb"], id: id!.toUpperCase(), rest: rest.trim() };
}
