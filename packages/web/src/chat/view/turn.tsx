/** One turn: what the person wrote, what came back, and the facts about it. */

import {
	type ApprovalJson,
	type EventJson,
	isShown,
	type MessageJson,
	type MessageView,
	type RunJson,
	toNexusError,
} from "@nexus-stream/protocol";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { dispositionWords } from "../../adapters/channels.ts";
import type { WebApp } from "../../app/app.ts";
import { formatRoute } from "../../app/route.ts";
import { durationText, outcomeOf, plural } from "../../app/words.ts";
import { CopyButton } from "../../ui/code-block.tsx";
import { Icon } from "../../ui/icon.tsx";
import { memo } from "../../ui/memo.ts";
import type { ApprovalActions } from "../approvals.ts";
import { type ChatState, isLive, type OutgoingMessage, type TurnItem, userMessagesOf } from "../chat.ts";
import { type Writer, writerOf } from "../writer.ts";
import { Answer, Dots, OutcomeNote, Verified } from "./answer.tsx";
import { ApprovalContext } from "./approval.tsx";
import { backToWriting } from "./composer.tsx";
import { Message } from "./message.tsx";

export interface TurnProps {
	turn: TurnItem;
	/** JSON of the messages: compared by value, because this tab's own are made anew each time. */
	questions: string;
	/** It answers the messages of an earlier turn once more. */
	retries: boolean;
	/** What the run asks that is still open, as the daemon lists it: ids, separated by commas. */
	pending: string;
	/** JSON of what became of questions that the run left open. */
	decisions: string;
	/** Nothing comes after it: it can be gone on with. */
	newest: boolean;
	onSeen(runId: string): void;
	app: Pick<WebApp, "approvalActionsOf" | "continueRun" | "retryRun" | "refreshRun">;
}

export const Turn = memo(({ turn, questions, retries, pending, decisions, newest, onSeen, app }: TurnProps) => {
	const actions = useApprovalActions(turn, pending, decisions, app);
	useRefresh(turn, pending, app);
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
			{turn.row?.continues !== undefined && <p class="continues">Continued</p>}
			{retries && <p class="continues">Tried again</p>}
			<ApprovalContext.Provider value={actions}>
				{turn.view ? <Answer view={turn.view} /> : <LedgerAnswer row={turn.row} />}
			</ApprovalContext.Provider>
			<Facts turn={turn} newest={newest} app={app} />
		</article>
	);
});

/** A live run tells by itself what it asks; of one that was cut off the daemon knows. */
function useApprovalActions(
	turn: TurnItem,
	pending: string,
	decisions: string,
	app: TurnProps["app"],
): ApprovalActions {
	const { runId, row } = turn;
	const live = isLive(turn);
	const isContinued = row?.continued_by !== undefined;
	return useMemo(() => {
		const decided = JSON.parse(decisions) as ApprovalJson[];
		return {
			...app.approvalActionsOf(runId),
			isPending: (id) => live || pending.split(",").includes(id),
			decided: (one) => decided.find(({ id }) => id === one),
			isContinued,
		};
	}, [app, runId, live, pending, decisions, isContinued]);
}

/** While a decision is open a run can be neither continued nor retried: once it is not, what can be done is another. */
function useRefresh(turn: TurnItem, pending: string, app: TurnProps["app"]): void {
	const before = useRef(pending);
	const { runId } = turn;
	const live = isLive(turn);
	useEffect(() => {
		if (before.current !== "" && pending === "" && !live) app.refreshRun(runId);
		before.current = pending;
	}, [app, runId, pending, live]);
}

interface TurnMessage {
	message: MessageJson;
	/** What became of it, where that is more than being answered. */
	became?: string | undefined;
}

export function questionsOf(chat: ChatState, turn: TurnItem): TurnMessage[] {
	return userMessagesOf(chat, turn).map((message) => {
		const event = message.event_id === undefined ? undefined : chat.events[message.event_id];
		if (!event || event.disposition === "started" || event.disposition === "queued") return { message };
		return { message, became: dispositionWords(event).text };
	});
}

/** What a person wrote. Whose words they are is seen, and said to those who do not see on which side they stand. */
const Bubble = ({ text, writer }: { text: string; writer: Writer | undefined }) => (
	<>
		{writer ? (
			<span class="writer" dir="auto">
				{writer.name} <small>{writer.origin}</small>
				<span class="sr">:</span>
			</span>
		) : (
			<span class="sr">You:</span>
		)}
		<div class="bubble" dir="auto">
			{text}
		</div>
	</>
);

const Question = ({ message, became }: TurnMessage) => (
	<div class="question" data-by={writerOf(message) ? "other" : "you"}>
		<Bubble text={message.text} writer={writerOf(message)} />
		{became !== undefined && <span class="delivery">{became}</span>}
		{message.attachments?.map((file) => (
			<span class="attachment" key={file.name}>
				{file.name}
			</span>
		))}
	</div>
);

/** Without frames only the settled text is left: no parts, no checksums. */
function LedgerAnswer({ row }: { row: RunJson | undefined }) {
	if (!row || row.status === "running" || row.status === "stopping") return <Dots />;
	const outcome = outcomeOf(undefined, row);
	const messages = row.messages.filter(
		(message) => message.role === "assistant" && message.text !== "" && isShown(message),
	);
	return (
		<div class="answer">
			{messages.map((message, index) => (
				<Message key={index} message={plainMessage(message, row)} />
			))}
			{outcome && outcome.tone !== "good" && (
				<OutcomeNote tone={outcome.tone} title={outcome.title} detail={outcome.detail} />
			)}
		</div>
	);
}

const plainMessage = (message: MessageJson, row: RunJson): MessageView => ({
	messageId: message.message_id ?? "",
	contentType: "text/markdown",
	text: message.text,
	state: "completed",
	agent: message.agent,
	reasoning: [],
	tools: [],
	parts: [],
	startedAt: row.started_at,
});

function Facts({ turn, newest, app }: Pick<TurnProps, "turn" | "newest" | "app">) {
	const { view, row } = turn;
	if (isLive(turn) || (!view && !row)) return <Stopping turn={turn} />;
	const startedAt = view?.startedAt ?? row?.started_at;
	const endedAt = view?.endedAt ?? row?.ended_at;
	const output = view?.usage?.output ?? row?.usage?.output ?? -1;
	const text = (view?.messages ?? row?.messages.filter(({ role }) => role === "assistant") ?? [])
		.filter(isShown)
		.map((message) => message.text)
		.filter((said) => said !== "")
		.join("\n\n");
	return (
		<footer class="facts">
			{row?.rolled_back && <span>Rolled back: no later answer knows of it</span>}
			{view && <Verified view={view} />}
			{startedAt !== undefined && endedAt !== undefined && <span>{durationText(endedAt - startedAt)}</span>}
			{output >= 0 && <span>{plural(output, "token")}</span>}
			{text !== "" && <CopyButton text={text} what="answer" />}
			{newest && row && <Offers row={row} app={app} />}
			{row?.continued_by !== undefined && <span>Continued below</span>}
			<a class="inspect" href={formatRoute({ name: "run", runId: turn.runId })}>
				<Icon name="pulse" /> Inspect
			</a>
		</footer>
	);
}

/** Continue goes on where the run was cut off: what its tools have done is not done again. Retry answers the message from the start. */
function Offers({ row, app }: { row: RunJson; app: TurnProps["app"] }) {
	const [state, setState] = useState<{ busy?: "continue" | "retry"; error?: string }>({});
	const go = (what: "continue" | "retry", act: (runId: string) => Promise<void>) => () => {
		setState({ busy: what });
		act(row.run_id).then(backToWriting, (cause: unknown) => setState({ error: toNexusError(cause).message }));
	};
	const isBusy = state.busy !== undefined;
	return (
		<>
			{row.can_continue && (
				<button type="button" class="quiet continue" disabled={isBusy} onClick={go("continue", app.continueRun)}>
					<Icon name="play" /> {state.busy === "continue" ? "Continuing…" : "Continue"}
				</button>
			)}
			{row.can_retry && (
				<button type="button" class="quiet retry" disabled={isBusy} onClick={go("retry", app.retryRun)}>
					<Icon name="again" /> {state.busy === "retry" ? "Retrying…" : "Retry"}
				</button>
			)}
			{state.error !== undefined && <span role="alert">{state.error}</span>}
		</>
	);
}

function Stopping({ turn }: { turn: TurnItem }) {
	if (turn.stopping) return <footer class="facts">Stopping…</footer>;
	if (turn.stopError === undefined) return null;
	return (
		<p class="facts stop-failed" role="alert">
			Not stopped. {turn.stopError}
		</p>
	);
}

/** A message that no run shows, and why. */
export const UnansweredMessage = ({ event }: { event: EventJson }) => (
	<article class="turn" aria-label="Message without an answer">
		<div class="question" data-state={event.disposition} data-by={writerOf(event) ? "other" : "you"}>
			<Bubble text={event.text} writer={writerOf(event)} />
			<span class="delivery">{dispositionWords(event).text}</span>
		</div>
	</article>
);

export interface WaitingProps {
	message: OutgoingMessage;
	onRetry(key: string, text: string): void;
	onDiscard(key: string): void;
	onCancel(eventId: string): void;
}

/** A message that no run shows yet. */
export function Waiting({ message, onRetry, onDiscard, onCancel }: WaitingProps) {
	const { eventId } = message;
	return (
		<article class="turn" aria-label="Message on its way">
			<div class="question" data-state={message.state} data-by={message.writer ? "other" : "you"}>
				<Bubble text={message.text} writer={message.writer} />
				{message.state === "queued" && (
					<span class="delivery">
						Waiting for its turn
						{eventId !== undefined && (
							<button type="button" class="quiet" onClick={() => onCancel(eventId)}>
								Cancel
							</button>
						)}
					</span>
				)}
				{message.state === "failed" && (
					<span class="delivery" role="alert">
						Not sent. {message.error}
						<button type="button" class="quiet" onClick={() => onRetry(message.key, message.text)}>
							Try again
						</button>
						<button type="button" class="quiet" onClick={() => onDiscard(message.key)}>
							Discard
						</button>
					</span>
				)}
			</div>
			{(message.state === "sending" || message.state === "started") && <Dots />}
		</article>
	);
}
