/** The page turns the text of a model only into known elements with known attributes. */

import fc from "fast-check";
import { isValidElement, type VNode } from "preact";
import { describe, expect, it } from "vitest";
import { readCard, readCarousel } from "../../packages/web/src/chat/card.ts";
import { CodeBlock } from "../../packages/web/src/ui/code-block.tsx";
import { parseWhole } from "../../packages/web/src/ui/markdown.ts";
import { definitionsOf, renderBlock } from "../../packages/web/src/ui/markdown-view.tsx";
import { imageUrl, linkUrl, mediaUrl } from "../../packages/web/src/ui/safe-url.ts";
import { Scrollable } from "../../packages/web/src/ui/scrollable.tsx";
import { HOSTILE } from "../browser/hostile.ts";
import { character } from "../character.ts";
import { atEffort } from "../effort.ts";

const ATTRIBUTES: Record<string, readonly string[]> = {
	a: ["href", "target", "rel"],
	img: ["src", "alt"],
	input: ["type", "disabled", "checked"],
	ol: ["start"],
	p: ["class"],
	li: ["class"],
	th: ["class"],
	td: ["class"],
	div: ["class"],
};
const ELEMENTS = new Set(
	"p h3 h4 h5 h6 em strong del code br a span img sup blockquote li ul ol hr table thead tbody tr th td div input".split(
		" ",
	),
);

/** Every element below a node, with what it was given. */
function elementsOf(node: unknown): { name: string; props: Record<string, unknown> }[] {
	if (Array.isArray(node)) return node.flatMap(elementsOf);
	if (!isValidElement(node)) return [];
	const { type, props } = node as VNode<Record<string, unknown>>;
	const { children, ...own } = props as Record<string, unknown>;
	if (type === CodeBlock) {
		expect(
			Object.entries(own).every(([name, value]) => ["code", "lang"].includes(name) && typeof value === "string"),
		).toBe(true);
		return [];
	}
	const inner = elementsOf(children);
	if ((type as unknown) === Scrollable) {
		expect(own).toEqual({ as: "div", class: "table-frame", label: "Table" });
		return inner;
	}
	expect(typeof type).toBe("string");
	return [{ name: type as string, props: own }, ...inner];
}

function check(text: string): void {
	const nodes = parseWhole(text).map(({ node }) => node);
	const definitions = definitionsOf(nodes);
	for (const { name, props } of elementsOf(nodes.map((node) => renderBlock(node, definitions)))) {
		expect(ELEMENTS).toContain(name);
		const given = Object.entries(props).filter(([, value]) => value !== undefined);
		for (const [attribute, value] of given) {
			if (attribute === "dir") expect(value).toBe("auto");
			else expect(ATTRIBUTES[name] ?? []).toContain(attribute);
		}
		if (name === "a") expect(props.href).toMatch(/^(https?:\/\/|mailto:)/);
		if (name === "a") expect(props.rel).toBe("noopener noreferrer nofollow");
		if (name === "img") expect(props.src).toMatch(/^data:image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)[;,]/i);
	}
}

const scrap = fc.constantFrom(
	"<script>",
	"</script>",
	"<img src=x onerror=y>",
	"<svg onload=y>",
	"[a](",
	"![a](",
	")",
	"javascript:x",
	"JAVASCRIPT:x",
	"data:text/html,x",
	"data:image/png;base64,AA",
	"https://a.example/",
	"mailto:a@b.example",
	"vbscript:x",
	"file:///x",
	"//a.example",
	"\n",
	"\n\n",
	"> ",
	"- ",
	"1. ",
	"- [x] ",
	"| a | b |\n|:-:|--:|\n",
	"`",
	"```",
	"**",
	"_",
	"~~",
	"[r]",
	"[r]: javascript:x\n",
	"[r]: https://a.example\n",
	"[^1]",
	"[^1]: x\n",
	"# ",
	"&#106;avascript:x",
	"<https://a.example>",
	"<javascript:x>",
	"www.a.example",
	"\\",
	"\t",
	" ",
	"x",
	"\u0000",
	"\u2028",
	'"onx="',
	"'",
	"<!--",
	"-->",
	"<![CDATA[",
);

describe("markdown from a model", () => {
	it("becomes only known elements and attributes, whatever it says", () => {
		fc.assert(
			fc.property(fc.array(scrap, { maxLength: 40 }), (scraps) => check(scraps.join(""))),
			{ numRuns: atEffort(1000, 100) },
		);
		fc.assert(fc.property(fc.string({ unit: character, maxLength: 200 }), check), { numRuns: atEffort(300, 100) });
		check(HOSTILE);
	});

	it("does not exhaust the stack on deep nesting", () => {
		check("> ".repeat(55).concat("deep"));
		check("**_".repeat(100).concat("deep").concat("_**".repeat(100)));
	});

	it("shows HTML as the text it is", () => {
		const [block] = parseWhole("<b>not bold</b>");
		expect(block && renderBlock(block.node, new Map())).toEqual(expect.objectContaining({ type: "p" }));
		const [flow] = parseWhole("<div>\nnot a div\n</div>");
		expect(elementsOf(flow && renderBlock(flow.node, new Map()))).toEqual([
			{ name: "p", props: { class: "as-text", dir: "auto" } },
		]);
	});

	it.each(["# a", "a", "- a\n\n  b", "1. a", "> a\n>\n> b", "| a |\n|---|\n| b |", "[^1]\n\n[^1]: a"])(
		"%j: a top-level block has its own direction, and what it contains follows it",
		(text) => {
			const blocks = parseWhole(text);
			const drawn = blocks.map(({ node }) => elementsOf(renderBlock(node, definitionsOf([]))));
			for (const [block, ...inside] of drawn) {
				expect(block?.props.dir).toBe("auto");
				expect(inside.filter(({ props }) => props.dir !== undefined)).toEqual([]);
			}
		},
	);
});

describe("addresses from a model", () => {
	it.each([
		"javascript:alert(1)",
		"java\nscript:alert(1)",
		" javascript:alert(1)",
		"data:text/html,x",
		"blob:https://a.example/1",
		"/v1/sessions",
		"#code=x",
		"ftp://a.example",
		"",
	])("%j is not a link", (url) => expect(linkUrl(url)).toBeUndefined());

	it("only pictures that are already here are shown", () => {
		expect(imageUrl("https://a.example/x.png")).toBeUndefined();
		expect(imageUrl("data:text/html;base64,AA")).toBeUndefined();
		expect(imageUrl("data:image/png;base64,AA")).toBe("data:image/png;base64,AA");
		expect(mediaUrl("text/html", "AA", "image")).toBeUndefined();
		expect(mediaUrl("audio/wav", "not base64!", "audio")).toBeUndefined();
		expect(mediaUrl("audio/wav", "AAAA", "audio")).toBe("data:audio/wav;base64,AAAA");
		expect(mediaUrl('image/png" onerror=x', "AAAA", "image")).toBe("data:image/png;base64,AAAA");
	});

	it("cards keep only fields that are what they should be", () => {
		const image = "https://a.example/x.png";
		expect(readCard(JSON.stringify({ title: "T", price: 5, image, url: "javascript:x", onclick: "x" }))).toEqual({
			title: "T",
			price: "5",
		});
		expect(readCard('{"price":"1"}')).toBeUndefined();
		expect(readCard("not json")).toBeUndefined();
		expect(readCarousel('{"items":[{"title":"A"},{"nothing":1},"x",{"title":"B"}]}')).toEqual([
			{ title: "A" },
			{ title: "B" },
		]);
		expect(readCarousel("null")).toBeUndefined();
	});
});
