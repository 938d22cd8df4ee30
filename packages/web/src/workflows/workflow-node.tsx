/** One node of a workflow: its state, its text so far, its error with advice, and its output. */

import {
	WorkflowNodeKind as Kind,
	WorkflowState as State,
	type WorkflowNodeStatus,
} from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import type { RunView } from "@nexus-stream/protocol";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { RunLink } from "../adapters/channels.tsx";
import { msOf, nameOf } from "../app/runtime.ts";
import { Answer, Dots } from "../chat/view/answer.tsx";
import { Message, plainMessage } from "../chat/view/message.tsx";
import { Elapsed } from "../ui/clock.tsx";
import { Icon, Scrollable } from "../ui/element.tsx";
import { Status } from "../ui/status.tsx";
import { useEndFollower } from "../ui/stick.ts";
import { adviceOf, attemptWords, nodeKindWords, shownOutput, skippedWords, writes } from "./workflow.ts";
import { stateWords } from "./workflows.ts";
import { Files } from "./workflows-page.tsx";

interface NodeProps {
	node: WorkflowNodeStatus;
	nodes: readonly WorkflowNodeStatus[];
	output: Readonly<Record<string, unknown>> | undefined;
	/** The text of its run so far. */
	text: RunView | undefined;
	/** Its output is part of the result of the workflow. */
	isResult: boolean;
	workflowId: string;
}

export function WorkflowNode({ node, nodes, output, text, isResult, workflowId }: NodeProps) {
	const attempt = attemptWords(node);
	const { nodeId: id, state, reason } = node;
	const startedAt = msOf(node.startedAt);
	return (
		<li class="box node" data-node={id} data-state={nameOf(State, state)} tabIndex={-1} aria-label={id}>
			<header class="row wrap">
				<h2>{id}</h2>
				<span class="fine node-kind" title={nameOf(Kind, node.kind).toUpperCase()}>
					{nodeKindWords(node.kind)}
				</span>
				{isResult && <span class="tag">Result</span>}
				{attempt !== undefined && <span class="node-attempt">{attempt}</span>}
				<RunLink runId={node.runId} />
				<span class="fine mark node-state">
					{startedAt !== undefined && (
						<Elapsed from={startedAt} to={isWaiting(node) ? startedAt : msOf(node.finishedAt)} />
					)}
					<Status words={stateWords(node)} />
				</span>
			</header>
			{state === State.SKIPPED && <p class="note">{skippedWords(node, nodes)}</p>}
			{reason !== "" && <NodeError node={node} again={isWaiting(node)} />}
			<Written node={node} text={text} output={output} />
			{output && <Output output={output} open={isResult} hasText={writes(node)} workflowId={workflowId} />}
		</li>
	);
}

/** Whether an attempt failed and the next one is due. */
const isWaiting = ({ state }: WorkflowNodeStatus): boolean => state === State.QUEUED;

function NodeError({ node, again }: { node: WorkflowNodeStatus; again: boolean }) {
	const advice = adviceOf(node);
	return (
		<p class="node-error" data-tone={again ? "warn" : "bad"}>
			<Icon name="warn" />
			<span>
				{node.reason}
				{again ? " It is tried again." : advice !== undefined && <small>{withCode(advice)}</small>}
			</span>
		</p>
	);
}

/** Commands in backticks are shown as code. */
const withCode = (text: string): ComponentChildren =>
	text.split("`").map((part, at) => (at % 2 === 1 ? <code>{part}</code> : part));

/** The text of a node that writes: from its stream while it runs, afterwards from its output. */
function Written({ node, text, output }: Pick<NodeProps, "node" | "text" | "output">) {
	const given = useMemo(() => (output && !text ? shownOutput(output).text : undefined), [output, text]);
	if (!writes(node)) return null;
	const label = `Text of ${node.nodeId}`;
	if (text)
		return (
			<Growing label={label} mark={text}>
				<Answer view={text} />
			</Growing>
		);
	if (given !== undefined)
		return (
			<Scrollable as="div" class="sunken node-text" label={label}>
				<Message message={plainMessage(given)} />
			</Scrollable>
		);
	return node.state === State.RUNNING ? (
		<div class="sunken node-text">
			<Dots />
		</div>
	) : null;
}

/** Follows the end of its growing content, unless the reader scrolls up. */
function Growing({ label, mark, children }: { label: string; mark: unknown; children: ComponentChildren }) {
	const { box, onScroll } = useEndFollower<HTMLElement>([mark]);
	return (
		// biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
		<section class="sunken node-text" ref={box} onScroll={onScroll} tabIndex={0} aria-label={label}>
			{children}
		</section>
	);
}

interface OutputProps {
	output: Readonly<Record<string, unknown>>;
	open: boolean;
	/** The text is already shown above. */
	hasText: boolean;
	workflowId: string;
}

function Output({ output, open, hasText, workflowId }: OutputProps) {
	const { text, json, facts, artifacts, cut } = useMemo(() => shownOutput(output), [output]);
	const words = hasText ? undefined : text;
	return (
		<>
			{artifacts.length > 0 && <Files artifacts={artifacts} />}
			{(words !== undefined || json !== undefined) && (
				<details class="node-output" open={open}>
					<summary>Output</summary>
					{words !== undefined && (
						<Scrollable as="div" class="sunken node-text" label="Text">
							<Message message={plainMessage(words)} />
						</Scrollable>
					)}
					{json !== undefined && (
						<Scrollable as="pre" class="sunken">
							<code>{json}</code>
						</Scrollable>
					)}
					{cut && (
						<p class="note">
							Shortened. <code>nexus workflow show {workflowId}</code> prints all of it.
						</p>
					)}
				</details>
			)}
			{facts !== undefined && <p class="fine node-facts">{facts}</p>}
		</>
	);
}
