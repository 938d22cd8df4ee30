/** Turns parsed markdown into elements from a short list. HTML from a model is shown as the text it is. */

import type { AlignType, Definition, PhrasingContent, RootContent, Table } from "mdast";
import type { ComponentChildren, VNode } from "preact";
import { CodeBlock } from "./code-block.tsx";
import { Scrollable } from "./element.tsx";
import { imageUrl, linkUrl } from "./safe-url.ts";

/** Deeper levels are shown as plain text, so that no answer can exhaust the stack. */
const DEPTH_MAX = 40;

type Node = RootContent;
type Definitions = ReadonlyMap<string, Definition>;

interface MarkdownContext {
	readonly definitions: Definitions;
	readonly depth: number;
	/** A top-level block takes the direction of its first letter; nested elements inherit it. */
	readonly dir: "auto" | undefined;
}

/** Where `[name]: address` lines point, for the links that use them. */
export function definitionsOf(nodes: readonly Node[]): Definitions {
	const found = new Map<string, Definition>();
	const look = (list: readonly Node[], depth: number) => {
		for (const node of list) {
			if (node.type === "definition" && !found.has(node.identifier)) found.set(node.identifier, node);
			if ("children" in node && depth < DEPTH_MAX) look(node.children as Node[], depth + 1);
		}
	};
	look(nodes, 0);
	return found;
}

export const renderBlock = (node: Node, definitions: Definitions): ComponentChildren =>
	node.type === "html" ? (
		<p class="as-text" dir="auto">
			{node.value}
		</p>
	) : (
		render(node, { definitions, depth: 0, dir: "auto" })
	);

function renderAll(nodes: readonly Node[], context: MarkdownContext): ComponentChildren {
	return nodes.map((node) => render(node, context));
}

function render(node: Node, context: MarkdownContext): ComponentChildren {
	if (context.depth > DEPTH_MAX) return textOf(node);
	const inner = { ...context, depth: context.depth + 1, dir: undefined };
	const { dir } = context;
	switch (node.type) {
		case "text":
			return node.value;
		case "paragraph":
			return <p dir={dir}>{renderAll(node.children, inner)}</p>;
		case "heading":
			return heading(node.depth, dir, renderAll(node.children, inner));
		case "emphasis":
			return <em>{renderAll(node.children, inner)}</em>;
		case "strong":
			return <strong>{renderAll(node.children, inner)}</strong>;
		case "delete":
			return <del>{renderAll(node.children, inner)}</del>;
		case "inlineCode":
			return <code>{node.value}</code>;
		case "break":
			return <br />;
		case "link":
			return link(node.url, renderAll(node.children, inner));
		case "linkReference":
			return link(context.definitions.get(node.identifier)?.url ?? "", renderAll(node.children, inner));
		case "image":
			return image(node.url, node.alt ?? "");
		case "imageReference":
			return image(context.definitions.get(node.identifier)?.url ?? "", node.alt ?? "");
		case "footnoteReference":
			return <sup>[{node.label ?? node.identifier}]</sup>;
		case "html":
			return node.value;
		default:
			return renderFlow(node, dir, inner);
	}
}

function renderFlow(
	node: Exclude<Node, PhrasingContent>,
	dir: MarkdownContext["dir"],
	context: MarkdownContext,
): ComponentChildren {
	switch (node.type) {
		case "code":
			return <CodeBlock code={node.value} lang={node.lang ?? ""} />;
		case "blockquote":
			return <blockquote dir={dir}>{renderAll(node.children, context)}</blockquote>;
		case "list": {
			const items = node.children.map((item) => (
				<li class={typeof item.checked === "boolean" ? "task" : undefined}>
					{typeof item.checked === "boolean" && <input type="checkbox" disabled checked={item.checked} />}
					{item.children.map((child) =>
						child.type === "paragraph" && !node.spread && !item.spread
							? renderAll(child.children, context)
							: render(child, context),
					)}
				</li>
			));
			return node.ordered ? (
				<ol start={node.start ?? 1} dir={dir}>
					{items}
				</ol>
			) : (
				<ul dir={dir}>{items}</ul>
			);
		}
		case "thematicBreak":
			return <hr />;
		case "table":
			return table(node, dir, context);
		case "footnoteDefinition":
			return (
				<div class="footnote" dir={dir}>
					<sup>[{node.label ?? node.identifier}]</sup>
					{renderAll(node.children, context)}
				</div>
			);
		default:
			// A definition is used, not shown; what only other parsers make is shown as its text.
			return node.type === "definition" ? null : textOf(node);
	}
}

/** The page has its own first two levels. */
function heading(depth: number, dir: MarkdownContext["dir"], children: ComponentChildren): VNode {
	const Level = depth <= 1 ? "h3" : depth === 2 ? "h4" : depth === 3 ? "h5" : "h6";
	return <Level dir={dir}>{children}</Level>;
}

function link(url: string, children: ComponentChildren): ComponentChildren {
	const href = linkUrl(url);
	if (href === undefined) return <span>{children}</span>;
	return (
		<a href={href} target="_blank" rel="noopener noreferrer nofollow">
			{children}
		</a>
	);
}

/** A picture on another server is shown as a link: loading it would reveal the reader to that server. */
function image(url: string, alt: string): ComponentChildren {
	const src = imageUrl(url);
	if (src !== undefined) return <img src={src} alt={alt} />;
	return link(url, `🖼 ${alt || "image"}`);
}

function table(node: Table, dir: MarkdownContext["dir"], context: MarkdownContext): VNode {
	const [head, ...body] = node.children;
	const cells = (row: typeof head, Cell: "th" | "td") =>
		row?.children.map((cell, column) => (
			<Cell class={alignClass(node.align?.[column])}>{renderAll(cell.children, context)}</Cell>
		));
	return (
		<Scrollable as="div" class="table-frame" label="Table">
			<table dir={dir}>
				<thead>
					<tr>{cells(head, "th")}</tr>
				</thead>
				<tbody>
					{body.map((row) => (
						<tr>{cells(row, "td")}</tr>
					))}
				</tbody>
			</table>
		</Scrollable>
	);
}

const alignClass = (align: AlignType | undefined): string | undefined =>
	align === "right" ? "to-right" : align === "center" ? "to-center" : undefined;

/** The text of a node, without recursion. */
function textOf(node: Node): string {
	let text = "";
	const rest: Node[] = [node];
	for (let next = rest.pop(); next; next = rest.pop()) {
		if ("value" in next) text += next.value;
		if ("children" in next) rest.push(...(next.children as Node[]).toReversed());
	}
	return text;
}
