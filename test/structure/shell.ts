/** Reads the commands of a shell example: words without their quotes, one list for each command. */

/** Variables and substitutions stay as they stand: `$API/v1`, `$(cat .nexus/token)`. */
export function commandsOf(script: string): string[][] {
	const commands: string[][] = [];
	let words: string[] = [];
	const end = () => {
		if (words.length > 0) commands.push(words);
		words = [];
	};
	for (const token of tokensOf(script)) {
		if (token.type === "word") words.push(token.text);
		else end();
	}
	end();
	return commands.map(withoutSettings).filter(({ length }) => length > 0);
}

interface Token {
	type: "word" | "separator";
	text: string;
}

/** A comment, a line continued, a separator, a redirection with its target, or a word of quoted and plain parts. */
const TOKEN =
	/(?<skip>[ \t]+|\\\n|(?<=^|\s)#[^\n]*|\d?>{1,2} *\S+|< +\S+)|(?<separator>\n|;|&&|\|\|?|&)|(?<word>(?:'[^']*'|"(?:\\.|\$\([^)]*\)|[^"\\])*"|\$\([^)]*\)|<[\w, /…-]+>|\\.|[^\s;&|<>'"\\])+)/gmy;

function* tokensOf(script: string): Generator<Token> {
	let read = 0;
	for (const { 0: text, groups, index } of script.matchAll(TOKEN)) {
		read = index + text.length;
		if (groups!.word !== undefined) yield { type: "word", text: unquoted(groups!.word) };
		if (groups!.separator !== undefined) yield { type: "separator", text };
	}
	if (read !== script.length)
		throw new Error(`cannot read the command at ${JSON.stringify(script.slice(read, read + 40))}`);
}

const unquoted = (word: string): string =>
	word.replace(/'([^']*)'|"((?:\\.|[^"\\])*)"/g, (_, plain?: string, quoted?: string) => plain ?? quoted ?? "");

/** `NAME=value` before a command sets a variable for it; alone it is not a command. */
const withoutSettings = (words: string[]): string[] => {
	const from = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
	return from < 0 ? [] : words.slice(from);
};
