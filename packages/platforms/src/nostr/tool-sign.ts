/** A tool as everybody may see it: its sign and its name, never what it is called with. */

const NAME_CHARS_MAX = 60;

const SIGNS: readonly (readonly [RegExp, string])[] = [
	[/^(?:read|view|cat)(?:_|$)/, "📖"],
	[/^(?:edit|write)(?:_|$)/, "✏️"],
	[/^git(?:_|$)/, "🔧"],
	[/^(?:bash|shell)(?:_|$)/, "🖥️"],
];

export function toolText(name: string): string {
	const [, server, action] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
	if (server !== undefined && action !== undefined) return `🔌 ${plain(`${server}: ${action.replaceAll("_", " ")}`)}`;
	const sign = SIGNS.find(([pattern]) => pattern.test(name))?.[1] ?? "🛠️";
	return `${sign} ${plain(name)}`;
}

const plain = (text: string): string => text.replace(/\s+/g, " ").trim().slice(0, NAME_CHARS_MAX).toWellFormed();
