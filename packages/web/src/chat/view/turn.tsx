/** One turn: the question, the answer, and the facts about the run. */

import { isShown, toNexusError } from "@nexus-stream/protocol";
import type { ApprovalJson, MessageJson, RunJson } from "@nexus-stream/protocol/api";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { dispositionWords } from "../../adapters/channels.tsx";
import { formatRoute } from "../../app/route.ts";
import { CopyButton } from "../../ui/code-block.tsx";
import { Icon, memo } from "../../ui/element.tsx";
import { durationText, plural } from "../../ui/format.ts";
import type { RunActions } from "../actions.ts";
import type { ApprovalActions } from "../approvals.ts";
import { type ChatState, isLive, type TurnItem } from "../chat.ts";
import { userMessagesOf } from "../thread.ts";
import { outcomeOf } from "../words.ts";
import { writerOf } from "../writer.ts";
import { Answer, Dots, OutcomeNote, Verified } from "./answer.tsx";
import { ApprovalContext } from "./approval.tsx";
import { backToWriting } from "./composer.tsx";
import { Message, plainMessage } from "./message.tsx";
import { Bubble } from "./waiting.tsx";

interface TurnProps {
	turn: TurnItem;
	/** JSON of the messages, compared by value: those of this tab are new objects each time. */
	questions: string;
	/** It answers the messages of an earlier turn again. */
	retries: boolean;
	/** The ids of the run's open approvals and questions, separated by commas. */
	pending: string;
	/** JSON of the decisions on questions that were open when the run ended. */
	decisions: string;
	/** Only the newest turn can be continued or retried. */
	newest: boolean;
	onSeen(runId: string): void;
	runs: RunActions;
}

export const Turn = memo(({ turn, questions, retries, pending, decisions, newest, onSeen, runs }: TurnProps) => {
	const actions = useApprovalActions(turn, pending, decisions, runs);
	useRefresh(turn, pending, runs);
	const element = useRef<HTMLElement>(null);
	const wantsFrames = !turn.view && turn.row?.frames_available === true && !isLive(turn);
	useEffect(() => {
		if (!wantsFrames || !element.current) return undefined;
		const observer = new IntersectionObserver(
			(entries) => entries.some((entry) => entry.isIntersecting) && onSeen(turn.runId),
			{ rootMargin: "400px" },
		);
		observer.observe(element.current);
		return () => observer.disconnect();
	}, [wantsFrames, turn.runId, onSeen]);
	return (
		<article
			class="turn"
			ref={element}
			aria-label="Turn"
			data-run={turn.runId}
			data-live={isLive(turn)}
			data-rolled-back={turn.row?.rolled_back}
		>
			{(JSON.parse(questions) as TurnMessage[]).map(({ message, became }, index) => (
				<Question key={index} message={message} became={became} />
			))}
			{turn.row?.continues !== undefined && <p class="fine continues">Continued</p>}
			{retries && <p class="fine continues">Tried again</p>}
			<ApprovalContext.Provider value={actions}>
				{turn.view ? <Answer view={turn.view} /> : <LedgerAnswer row={turn.row} />}
			</ApprovalContext.Provider>
			<Facts turn={turn} newest={newest} runs={runs} />
		</article>
	);
});

/** The frames of a live run show its open questions; for an interrupted run the daemon lists them. */
function useApprovalActions(turn: TurnItem, pending: string, decisions: string, runs: RunActions): ApprovalActions {
	const { runId, row } = turn;
	const live = isLive(turn);
	const isContinued = row?.continued_by !== undefined;
	return useMemo(() => {
		const decided = JSON.parse(decisions) as ApprovalJson[];
		return {
			...runs.approvalsOf(runId),
			isPending: (id) => live || pending.split(",").includes(id),
			decided: (one) => decided.find(({ id }) => id === one),
			isContinued,
		};
	}, [runs, runId, live, pending, decisions, isContinued]);
}

/** A run with an open decision can be neither continued nor retried, so its row is read again after the decision. */
function useRefresh(turn: TurnItem, pending: string, runs: RunActions): void {
	const before = useRef(pending);
	const { runId } = turn;
	const live = isLive(turn);
	useEffect(() => {
		if (before.current !== "" && pending === "" && !live) runs.refresh(runId);
		before.current = pending;
	}, [runs, runId, pending, live]);
}

interface TurnMessage {
	message: MessageJson;
	/** How it was handled, unless it was simply answered. */
	became?: string | undefined;
}

export function questionsOf(chat: ChatState, turn: TurnItem): TurnMessage[] {
	return userMessagesOf(chat, turn).map((message) => {
		const event = message.event_id === undefined ? undefined : chat.events[message.event_id];
		if (!event || event.disposition === "started" || event.disposition === "queued") return { message };
		return { message, became: dispositionWords(event).text };
	});
}

const Question = ({ message, became }: TurnMessage) => (
	<div class="question" data-by={writerOf(message) ? "other" : "you"}>
		<Bubble text={message.text} writer={writerOf(message)} />
		{became !== undefined && <span class="fine row wrap delivery">{became}</span>}
		{message.attachments?.map((file) => (
			<span class="attachment" key={file.name}>
				{file.name}
			</span>
		))}
	</div>
);

/** The answer from the ledger, which has only the text: no parts, no checksums. */
function LedgerAnswer({ row }: { row: RunJson | undefined }) {
	if (!row || row.status === "running" || row.status === "stopping") return <Dots />;
	const messages = row.messages.filter(
		(message) => message.role === "assistant" && message.text !== "" && isShown(message),
	);
	return (
		<div class="answer">
			{messages.map((message, index) => (
				<Message key={index} message={plainMessage(message.text, { startedAt: row.started_at })} />
			))}
			<OutcomeNote outcome={outcomeOf(undefined, row)} />
		</div>
	);
}

function Facts({ turn, newest, runs }: Pick<TurnProps, "turn" | "newest" | "runs">) {
	const { view, row } = turn;
	if (isLive(turn) || (!view && !row)) return <Stopping turn={turn} />;
	const startedAt = view?.startedAt ?? row?.started_at;
	const endedAt = view?.endedAt ?? row?.ended_at;
	const output = view?.usage?.output ?? row?.usage?.output ?? -1;
	const text = (view?.messages ?? row?.messages.filter(({ role }) => role === "assistant") ?? [])
		.filter(isShown)
		.map((message) => message.text)
		.filter(Boolean)
		.join("\n\n");
	return (
		<footer class="fine row wrap facts">
			{row?.rolled_back && <span>Rolled back: later answers do not include it</span>}
			{view && <Verified view={view} />}
			{startedAt !== undefined && endedAt !== undefined && <span>{durationText(endedAt - startedAt)}</span>}
			{output >= 0 && <span>{plural(output, "token")}</span>}
			{text !== "" && <CopyButton text={text} what="answer" />}
			{newest && row && <Offers row={row} runs={runs} />}
			{row?.continued_by !== undefined && <span>Continued below</span>}
			<a class="mark inspect" href={formatRoute({ name: "run", runId: turn.runId })}>
				<Icon name="pulse" /> Inspect
			</a>
		</footer>
	);
}

/** Continue resumes the run where it was interrupted, without repeating its tool calls. Retry answers the message from the start. */
function Offers({ row, runs }: { row: RunJson; runs: RunActions }) {
	const [state, setState] = useState<{ busy?: "continue" | "retry"; error?: string }>({});
	const go = (action: "continue" | "retry") => () => {
		setState({ busy: action });
		runs
			.resume(row.run_id, action)
			.then(backToWriting, (cause: unknown) => setState({ error: toNexusError(cause).message }));
	};
	const isBusy = state.busy !== undefined;
	return (
		<>
			{row.can_continue && (
				<button type="button" class="quiet continue" disabled={isBusy} onClick={go("continue")}>
					<Icon name="play" /> {state.busy === "continue" ? "Continuing…" : "Continue"}
				</button>
			)}
			{row.can_retry && (
				<button type="button" class="quiet retry" disabled={isBusy} onClick={go("retry")}>
					<Icon name="again" /> {state.busy === "retry" ? "Retrying…" : "Retry"}
				</button>
			)}
			{state.error !== undefined && <span role="alert">{state.error}</span>}
		</>
	);
}

function Stopping({ turn }: { turn: TurnItem }) {
	if (turn.stopping) return <footer class="fine row wrap facts">Stopping…</footer>;
	if (turn.stopError === undefined) return null;
	return (
		<p class="fine row wrap facts stop-failed" role="alert">
			Not stopped. {turn.stopError}
		</p>
	);
}
