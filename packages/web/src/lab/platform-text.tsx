/** A message's text as its platform would show it; its content only ever becomes text inside known elements. */

import type { LabMessageJson } from "@nexus-stream/protocol/api";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { EMPTY_DOC, grow } from "../ui/markdown.ts";
import { definitionsOf, renderBlock } from "../ui/markdown-view.tsx";
import { type Mark, type MarkedText, runsOfMarks, runsOfRanges } from "./marks.ts";

export function PlatformText({ message }: { message: LabMessageJson }): VNode {
	const { text, style, ranges } = message;
	const shown = useMemo(() => render(text, style, ranges), [text, style, ranges]);
	return (
		<div class={style === "markdown" ? "prose" : "as-written"} dir={style === "markdown" ? undefined : "auto"}>
			{shown}
		</div>
	);
}

function render(text: string, style: LabMessageJson["style"], ranges: LabMessageJson["ranges"]): ComponentChildren {
	switch (style) {
		case "plain":
			return text;
		case "marks":
			return runsOfMarks(text).map(renderRun);
		case "ranges":
			return runsOfRanges(text, ranges ?? []).map(renderRun);
		case "markdown": {
			const nodes = grow(EMPTY_DOC, text).blocks.map(({ node }) => node);
			const definitions = definitionsOf(nodes);
			return nodes.map((node) => renderBlock(node, definitions));
		}
		default:
			return style satisfies never;
	}
}

const renderRun = ({ text, marks }: MarkedText): ComponentChildren => marks.reduceRight<ComponentChildren>(wrap, text);

function wrap(inner: ComponentChildren, mark: Mark): ComponentChildren {
	switch (mark) {
		case "bold":
			return <strong>{inner}</strong>;
		case "italic":
			return <em>{inner}</em>;
		case "strike":
			return <del>{inner}</del>;
		case "code":
			return <code>{inner}</code>;
		case "pre":
			return <code class="block">{inner}</code>;
		default:
			return <span class={`is-${mark}`}>{inner}</span>;
	}
}
