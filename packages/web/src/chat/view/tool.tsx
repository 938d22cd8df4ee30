/** Tool calls and reasoning between the text: state and duration at a glance, the details on demand. */

import type { ReasoningView, ToolView } from "@nexus-stream/protocol";
import { useContext } from "preact/hooks";
import { Elapsed } from "../../ui/clock.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Scrollable } from "../../ui/scrollable.tsx";
import { approvalOf, isOpen, wantsWords } from "../approvals.ts";
import { ApprovalCard, ApprovalContext } from "./approval.tsx";

const STATUS_WORD = { started: "running", progress: "running", completed: "done", failed: "failed" } as const;
const STATUS_ICON = {
	running: "wrench",
	waiting: "shield",
	"not run": "shield",
	done: "check",
	failed: "cross",
} as const;

export function Tool({ tool, now }: { tool: ToolView; now: number | undefined }) {
	const approval = approvalOf(tool);
	const actions = useContext(ApprovalContext);
	const waits = approval !== undefined && isOpen(approval, Date.now()) && actions?.isPending(approval.id) === true;
	return (
		<>
			<Call tool={tool} now={now} waits={waits} />
			{approval && <ApprovalCard approval={approval} tool={tool.name} />}
		</>
	);
}

/** `waits`: for a person. A call that was interrupted with its run has not run, and can still be allowed. */
function Call({ tool, now, waits }: { tool: ToolView; now: number | undefined; waits: boolean }) {
	const isUndecided = tool.approval?.state === "pending";
	const word = waits ? "waiting" : isUndecided ? "not run" : STATUS_WORD[tool.status];
	const hasMore = tool.args !== undefined || tool.result !== undefined;
	const head = (
		<>
			<Icon name={STATUS_ICON[word]} />
			<code>{tool.name}</code>
			<span class="cut summary">{isUndecided ? wantsWords(tool) : (tool.summary ?? "")}</span>
			<span class="sr">{word}</span>
			{!isUndecided && <Elapsed from={tool.startedAt} to={tool.endedAt} now={now} />}
		</>
	);
	if (!hasMore) {
		return (
			<div class="aside tool" data-state={word}>
				<div class="aside-head">{head}</div>
			</div>
		);
	}
	return (
		<details class="aside tool" data-state={word}>
			<summary>
				{head}
				<Icon name="chevron" />
			</summary>
			<div class="aside-body">
				{tool.args !== undefined && <Value title="Arguments" value={tool.args} />}
				{tool.result !== undefined && <Value title="Result" value={tool.result} />}
			</div>
		</details>
	);
}

/** Longer values are cut; the inspector shows them whole. */
const VALUE_CHARS_MAX = 20_000;

function Value({ title, value }: { title: string; value: unknown }) {
	const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
	return (
		<>
			<h4>{title}</h4>
			<Scrollable as="pre">{text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text}</Scrollable>
		</>
	);
}

/** The reasoning of the model before its text, folded. */
export function Reasoning({ reasoning, now }: { reasoning: ReasoningView; now: number | undefined }) {
	const live = reasoning.state === "streaming";
	return (
		<details class="aside reasoning" data-state={live ? "live" : "done"}>
			<summary>
				<Icon name="thought" />
				<span>{live ? "Thinking" : "Thought"}</span>
				<Elapsed from={reasoning.startedAt} to={reasoning.endedAt} now={now} />
				<Icon name="chevron" />
			</summary>
			<div class="aside-body" dir="auto">
				{reasoning.text}
			</div>
		</details>
	);
}
