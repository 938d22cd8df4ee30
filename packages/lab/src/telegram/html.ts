/** Telegram's HTML as the Bot API documents it, read strictly: known tags, properly nested, four named entities. */

export interface Entity {
	type: string;
	offset: number;
	length: number;
	url?: string;
	language?: string;
}

export type Parsed = { text: string; entities: Entity[] } | { error: string };

const TAGS: Readonly<Record<string, string>> = {
	b: "bold",
	strong: "bold",
	i: "italic",
	em: "italic",
	u: "underline",
	ins: "underline",
	s: "strikethrough",
	strike: "strikethrough",
	del: "strikethrough",
	"tg-spoiler": "spoiler",
	a: "text_link",
	code: "code",
	pre: "pre",
	blockquote: "blockquote",
};

const NAMED: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"' };

export function parseTelegramHtml(html: string): Parsed {
	const open: { tag: string; offset: number; attributes: string }[] = [];
	const entities: Entity[] = [];
	let text = "";
	const pattern = /<(\/?)([a-zA-Z][a-zA-Z0-9-]*)((?:\s+[a-zA-Z-]+(?:="[^"<>]*")?)*)\s*>|&(#?\w+);|([^<&]+)|([<&])/gy;
	for (let found = pattern.exec(html); found; found = pattern.exec(html)) {
		const [, slash, tag, attributes = "", entity, plain, stray] = found;
		if (plain !== undefined) text += plain;
		else if (stray === "&") text += "&";
		else if (stray !== undefined) return { error: `Unsupported start tag at byte offset ${found.index}` };
		else if (entity !== undefined) text += decode(entity);
		else if (tag !== undefined) {
			const name = tag.toLowerCase();
			const known =
				TAGS[name] ?? (name === "span" && attributes.includes('class="tg-spoiler"') ? "spoiler" : undefined);
			if (slash) {
				const last = open.pop();
				if (last?.tag !== name) return { error: `Unmatched end tag at byte offset ${found.index}` };
				const type = TAGS[name] ?? "spoiler";
				entities.push(entityOf(type, last, text.length));
			} else if (known === undefined) {
				return { error: `Unsupported start tag "${name}" at byte offset ${found.index}` };
			} else open.push({ tag: name, offset: text.length, attributes });
		}
	}
	const left = open.at(-1);
	if (left) return { error: `Can't find end tag corresponding to start tag "${left.tag}"` };
	const shown = entities.filter(({ length }) => length > 0);
	const links = shown.filter((each) => each.type !== "text_link" || isKept(each, shown));
	return { text, entities: links };
}

/** A link to no address that Telegram knows, or with code in it, is only its text. */
function isKept({ url = "", offset, length }: Entity, others: readonly Entity[]): boolean {
	const address = URL.parse(url.replaceAll("&amp;", "&").replaceAll("&quot;", '"'));
	const web = address !== null && /^https?:$/.test(address.protocol) && /[.[]/.test(address.hostname);
	if (!web && address?.protocol !== "tg:") return false;
	return !others.some(
		(each) => /^(?:code|pre)$/.test(each.type) && each.offset < offset + length && offset < each.offset + each.length,
	);
}

function entityOf(type: string, from: { offset: number; attributes: string }, end: number): Entity {
	const url = /href="([^"]*)"/.exec(from.attributes)?.[1];
	const language = /class="language-([^"]*)"/.exec(from.attributes)?.[1];
	return { type, offset: from.offset, length: end - from.offset, url, language };
}

function decode(entity: string): string {
	if (entity.startsWith("#")) {
		const code = entity[1] === "x" ? Number.parseInt(entity.slice(2), 16) : Number(entity.slice(1));
		return Number.isInteger(code) ? String.fromCodePoint(code) : `&${entity};`;
	}
	return NAMED[entity] ?? `&${entity};`;
}
