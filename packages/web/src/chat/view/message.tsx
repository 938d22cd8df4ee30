/** One assistant message: its text as markdown, with tools, reasoning and parts at their positions in the text. */

import type { MessageView } from "@nexus-stream/protocol";
import type { RootContent } from "mdast";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useReducer, useRef } from "preact/hooks";
import { memo } from "../../ui/element.tsx";
import { type Doc, EMPTY_DOC, grow, nextStep } from "../../ui/markdown.ts";
import { definitionsOf, renderBlock } from "../../ui/markdown-view.tsx";
import { after } from "../../ui/timing.ts";
import { type Inset, insetsOf, placeInsets } from "../arrange.ts";
import { Part } from "./part.tsx";
import { Reasoning, Tool } from "./tool.tsx";

const NO_DEFINITIONS: ReturnType<typeof definitionsOf> = new Map();
/** The share of time that parsing may take: slow text is parsed less often while it grows. */
const PARSE_SHARE = 0.15;

/** The parsed text, grown piece by piece. */
function useDoc(text: string, live: boolean): Doc {
	const doc = useRef<Doc>(EMPTY_DOC);
	const parsed = useRef({ at: 0, tookMs: 0 });
	const [, redraw] = useReducer((count: number) => count + 1, 0);
	const dueAt = parsed.current.at + parsed.current.tookMs / PARSE_SHARE;
	const waitMs = live ? dueAt - performance.now() : 0;
	if (waitMs <= 0 && text !== doc.current.text) {
		const began = performance.now();
		doc.current = grow(doc.current, nextStep(doc.current, text));
		const at = performance.now();
		parsed.current = { at, tookMs: at - began };
	}
	const late = text !== doc.current.text;
	useEffect(() => (late ? after(Math.max(0, waitMs), () => redraw(undefined)) : undefined));
	return doc.current;
}

const BlockView = memo(
	({ node, definitions }: { node: RootContent; definitions: ReturnType<typeof definitionsOf> }) => (
		<>{renderBlock(node, definitions)}</>
	),
);

/** A finished message of which only the text is known. */
export const plainMessage = (text: string, known: Partial<MessageView> = {}): MessageView => ({
	...{ messageId: "", contentType: "text/markdown", text, state: "completed", startedAt: 0 },
	...{ reasoning: [], tools: [], parts: [] },
	...known,
});

export const Message = memo(({ message, now }: { message: MessageView; now?: number | undefined }) => {
	const live = message.state === "streaming";
	const doc = useDoc(message.text, live);
	const insets = useMemo(() => insetsOf(message), [message]);
	const definitions = useMemo(
		() => (doc.defines ? definitionsOf(doc.blocks.map(({ node }) => node)) : NO_DEFINITIONS),
		[doc],
	);
	if (doc.blocks.length === 0 && insets.length === 0) return null;
	return (
		<div class={live ? "prose is-live" : "prose"}>
			{placeInsets(doc.blocks, insets, doc.text.length).map((piece) =>
				piece.kind === "block" ? (
					<BlockView key={`b${piece.index}`} node={piece.block.node} definitions={definitions} />
				) : (
					<InsetView key={piece.key} inset={piece} now={now} />
				),
			)}
			{doc.blocks.some(({ plain }) => plain) && (
				<p class="note" role="note">
					Shown as plain text: formatting this would take too long.
				</p>
			)}
		</div>
	);
});

function InsetView({ inset, now }: { inset: Inset; now: number | undefined }): ComponentChildren {
	switch (inset.kind) {
		case "reasoning":
			return <Reasoning reasoning={inset.reasoning} now={now} />;
		case "tool":
			return <Tool tool={inset.tool} now={now} />;
		case "part":
			return <Part part={inset.part} />;
		default:
			return inset satisfies never;
	}
}
