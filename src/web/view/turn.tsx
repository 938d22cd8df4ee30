/** One turn: what the person wrote, what came back, and the facts about it. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
	type EventJson,
	isShown,
	type MessageJson,
	type MessageView,
	type RunJson,
	toNexusError,
} from "../../protocol/protocol.ts";
import type { App } from "../app.ts";
import type { Desk } from "../asking.ts";
import { dispositionWords } from "../channels.ts";
import { type ChatState, isLive, type Outgoing, type TurnItem, userMessagesOf } from "../chat.ts";
import { formatRoute } from "../route.ts";
import { durationText, outcomeOf, plural } from "../words.ts";
import { Answer, Dots, OutcomeNote, Verified } from "./answer.tsx";
import { DeskContext } from "./asking.tsx";
import { CopyButton } from "./code-block.tsx";
import { backToWriting } from "./composer.tsx";
import { Icon } from "./icon.tsx";
import { memo } from "./memo.ts";
import { Message } from "./message.tsx";

export interface TurnProps {
	turn: TurnItem;
	/** JSON of the messages: compared by value, because this tab's own are made anew each time. */
	questions: string;
	/** What the run asks that is still open, as the daemon lists it: ids, separated by commas. */
	pending: string;
	onSeen(runId: string): void;
	app: Pick<App, "deskOf" | "continueRun">;
}

export const Turn = memo(({ turn, questions, pending, onSeen, app }: TurnProps) => {
	const desk = useDesk(turn, pending, app);
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
			{(JSON.parse(questions) as Asked[]).map(({ message, became }, index) => (
				<Question key={index} message={message} became={became} />
			))}
			{turn.row?.continues !== undefined && <p class="continues">Continued</p>}
			<DeskContext.Provider value={desk}>
				{turn.view ? <Answer view={turn.view} /> : <LedgerAnswer row={turn.row} />}
			</DeskContext.Provider>
			<Facts turn={turn} app={app} />
		</article>
	);
});

/** A live run tells by itself what it asks; of one that was cut off the daemon knows. */
function useDesk(turn: TurnItem, pending: string, app: TurnProps["app"]): Desk {
	const { runId } = turn;
	const live = isLive(turn);
	return useMemo(
		() => ({ ...app.deskOf(runId), isAsked: (id) => live || pending.split(",").includes(id) }),
		[app, runId, live, pending],
	);
}

interface Asked {
	message: MessageJson;
	/** What became of it, where that is more than being answered. */
	became?: string | undefined;
}

export function questionsOf(chat: ChatState, turn: TurnItem): Asked[] {
	return userMessagesOf(chat, turn).map((message) => {
		const event = message.event_id === undefined ? undefined : chat.events[message.event_id];
		if (!event || event.disposition === "started" || event.disposition === "queued") return { message };
		return { message, became: dispositionWords(event).text };
	});
}

/** What a person wrote. The word is for those who do not see on which side it stands. */
const Bubble = ({ text }: { text: string }) => (
	<>
		<span class="sr">You:</span>
		<div class="bubble" dir="auto">
			{text}
		</div>
	</>
);

const Question = ({ message, became }: Asked) => (
	<div class="question">
		<Bubble text={message.text} />
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
	...(message.agent !== undefined && { agent: message.agent }),
	reasoning: [],
	tools: [],
	parts: [],
	startedAt: row.started_at,
});

function Facts({ turn, app }: Pick<TurnProps, "turn" | "app">) {
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
			{row?.can_continue && <Continue runId={turn.runId} app={app} />}
			{row?.continued_by !== undefined && <span>Continued below</span>}
			<a class="inspect" href={formatRoute({ name: "run", runId: turn.runId })}>
				<Icon name="pulse" /> Inspect
			</a>
		</footer>
	);
}

/** Goes on where the run was cut off; what its tools have done is not done again. */
function Continue({ runId, app }: { runId: string; app: TurnProps["app"] }) {
	const [state, setState] = useState<{ busy: boolean; error?: string }>({ busy: false });
	const go = () => {
		setState({ busy: true });
		app
			.continueRun(runId)
			.then(backToWriting, (cause: unknown) => setState({ busy: false, error: toNexusError(cause).message }));
	};
	return (
		<>
			<button type="button" class="quiet continue" disabled={state.busy} onClick={go}>
				<Icon name="play" /> {state.busy ? "Continuing…" : "Continue"}
			</button>
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
export const Aside = ({ event }: { event: EventJson }) => (
	<article class="turn" aria-label="Message without an answer">
		<div class="question" data-state={event.disposition}>
			<Bubble text={event.text} />
			<span class="delivery">{dispositionWords(event).text}</span>
		</div>
	</article>
);

export interface WaitingProps {
	message: Outgoing;
	onRetry(key: string, text: string): void;
	onDiscard(key: string): void;
	onCancel(eventId: string): void;
}

/** A message that no run shows yet. */
export function Waiting({ message, onRetry, onDiscard, onCancel }: WaitingProps) {
	const { eventId } = message;
	return (
		<article class="turn" aria-label="Message on its way">
			<div class="question" data-state={message.state}>
				<Bubble text={message.text} />
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
