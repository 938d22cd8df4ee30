/** The open session: its turns, newest at the bottom, and the composer. */

import type { ApprovalJson } from "@nexus-stream/protocol/api";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../ui/element.tsx";
import { FailureNotice } from "../../ui/status.tsx";
import { followEnd, STUCK, stepStick } from "../../ui/stick.ts";
import { type ChatState, decisionsOf, liveTurnOf, type TurnItem } from "../chat.ts";
import type { ChatPage } from "../session-feed.ts";
import { threadOf, waitingOf } from "../thread.ts";
import { announcement, chatPrompts, connectionOf, type Prompt } from "../words.ts";
import type { Writer } from "../writer.ts";
import { backToWriting, Composer } from "./composer.tsx";
import { questionsOf, Turn } from "./turn.tsx";
import { UnansweredMessage, Waiting } from "./waiting.tsx";

/** A distance to the end below this counts as the end. */
const AT_END_PX = 48;

export interface ChatProps {
	page: ChatPage;
	/** The engine that answers; undefined until the daemon has named it. */
	engine: string | undefined;
	/** A script answers instead of a model. */
	scripted: boolean;
	/** Pending approvals and questions of all sessions. */
	pending: readonly ApprovalJson[];
	/** The other side of the session, unless only the owner writes in it. */
	partner: Writer | undefined;
}

/** For buttons that disappear once they are pressed: the focus returns to the composer. */
const thenWrite =
	<Given extends unknown[]>(act: (...given: Given) => void) =>
	(...given: Given) => {
		act(...given);
		backToWriting();
	};

export function Chat({ page, engine, scripted, pending, partner }: ChatProps) {
	const chat = page.view.value;
	const { outbox, runs } = page;
	const live = liveTurnOf(chat);
	const scroll = useStickToEnd(chat);
	const send = (text: string) => outbox.send(text);
	return (
		<div class="chat" data-link={connectionOf(chat).state}>
			<div class="scroll" ref={scroll.box} onScroll={scroll.onScroll}>
				<div class="thread" ref={scroll.content}>
					{chat.older !== "none" && (
						<Older isLoading={chat.older === "loading"} onClick={() => void page.loadOlder()} />
					)}
					{chat.phase === "loading" && <p class="note">Loading…</p>}
					{chat.phase === "failed" && (
						<FailureNotice title="This session could not be loaded." onRetry={() => page.reload()}>
							{chat.error}
						</FailureNotice>
					)}
					{isEmpty(chat) && <EmptyState prompts={chatPrompts(engine, scripted)} onPick={thenWrite(send)} />}
					<Thread page={page} pending={pending} />
				</div>
			</div>
			<div class="dock">
				{scroll.away && <Button class="jump" icon="down" onClick={thenWrite(scroll.toEnd)} text="Jump to latest" />}
				<Composer
					session={chat.session}
					live={live !== undefined}
					stopping={live?.stopping === true}
					onSend={(text) => {
						send(text);
						scroll.toEnd();
					}}
					onStop={thenWrite(() => void runs.stop())}
				/>
				{partner && <AnswerStaysHere partner={partner} />}
				{scripted && <p class="scripted">Scripted: no model answers here.</p>}
			</div>
			<Announcer chat={chat} />
		</div>
	);
}

const isEmpty = (chat: ChatState): boolean =>
	chat.phase === "ready" && threadOf(chat).length === 0 && waitingOf(chat).length === 0;

function Thread({ page, pending }: { page: ChatPage; pending: readonly ApprovalJson[] }) {
	const chat = page.view.value;
	const { outbox, runs, frames } = page;
	const onSeen = useCallback((runId: string) => frames.load(runId), [frames]);
	const waiting = waitingOf(chat);
	const newest = chat.turns.at(-1);
	return (
		<>
			{threadOf(chat).map((item) =>
				item.kind === "turn" ? (
					<Turn
						key={item.turn.runId}
						turn={item.turn}
						questions={JSON.stringify(item.retries ? [] : questionsOf(chat, item.turn))}
						retries={item.retries}
						pending={pendingOf(pending, item.turn.runId)}
						decisions={JSON.stringify(decisionsOf(chat, item.turn))}
						newest={item.turn === newest && waiting.length === 0}
						onSeen={onSeen}
						runs={runs}
					/>
				) : (
					<UnansweredMessage key={item.event.event_id} event={item.event} />
				),
			)}
			{waiting.map((message) => (
				<Waiting
					key={message.key}
					message={message}
					onRetry={thenWrite((key, text) => outbox.send(text, key))}
					onDiscard={thenWrite((key) => outbox.discard(key))}
					onCancel={(eventId) => void outbox.cancel(eventId)}
				/>
			))}
		</>
	);
}

/** Explains that answers to the owner are not sent to the other side. */
const AnswerStaysHere = ({ partner: { name, channel, origin: place } }: { partner: Writer }) => (
	<p class="scripted whither">
		{channel === undefined
			? `Session of ${name} (${place}). What you write is answered here, with its history as context.`
			: `You write to the agent, with the history of ${name} as context. The answer stays here: nothing is sent to ${place}.`}
	</p>
);

const pendingOf = (pending: readonly ApprovalJson[], runId: string): string =>
	pending
		.filter((approval) => approval.run_id === runId)
		.map(({ id }) => id)
		.join();

/** Follows the end while it is in view, and keeps the position otherwise. */
function useStickToEnd(chat: ChatState) {
	const box = useRef<HTMLDivElement>(null);
	const content = useRef<HTMLDivElement>(null);
	const stick = useRef(STUCK);
	// Without messages there is no end to follow: the suggestions are read from the top.
	const hasTurns = useRef(false);
	hasTurns.current = chat.turns.length + chat.outgoing.length > 0;
	const heightBefore = useRef({ first: "", height: 0 });
	const [away, setAway] = useState(false);
	const follow = () => {
		if (box.current && hasTurns.current) stick.current = followEnd(stick.current, box.current);
	};
	const onScroll = () => {
		if (!box.current) return;
		stick.current = stepStick(stick.current, box.current, AT_END_PX);
		setAway(!stick.current.stuck && hasTurns.current);
	};
	const toEnd = () => {
		stick.current = STUCK;
		setAway(false);
		follow();
	};
	useLayoutEffect(() => {
		stick.current = STUCK;
		setAway(false);
	}, [chat.session]);
	// Pictures and blocks that are parsed late change the height without a new state.
	useEffect(() => {
		if (!content.current) return undefined;
		const observer = new ResizeObserver(follow);
		observer.observe(content.current);
		return () => observer.disconnect();
	}, []);
	// Older turns are inserted above; the visible part must not move.
	useLayoutEffect(() => {
		const element = box.current;
		if (!element) return;
		const first = chat.turns[0]?.runId ?? "";
		const before = heightBefore.current;
		if (before.first !== "" && before.first !== first && !stick.current.stuck) {
			element.scrollTop += element.scrollHeight - before.height;
		}
		heightBefore.current = { first, height: element.scrollHeight };
		follow();
	});
	return { box, content, onScroll, toEnd, away };
}

/** Not disabled while it loads, because a disabled button loses the focus. */
const Older = ({ isLoading, onClick }: { isLoading: boolean; onClick(): void }) => {
	const text = isLoading ? "Loading…" : "Show older messages";
	return <Button class="quiet older" onClick={onClick} aria-disabled={isLoading} text={text} />;
};

/** Messages to try in a new session. */
function EmptyState({ prompts, onPick }: { prompts: readonly Prompt[]; onPick(text: string): void }) {
	return (
		<section class="empty">
			<h2>Start with a message</h2>
			<p>Answers appear while they are written, survive a lost connection, and can be replayed later.</p>
			<ul>
				{prompts.map(({ title, text }) => (
					<li key={text}>
						<button type="button" class="box" onClick={() => onPick(text)}>
							<strong>{title}</strong>
							<code>{text}</code>
						</button>
					</li>
				))}
			</ul>
		</section>
	);
}

/** Announces to screen readers when an answer begins, ends or is cut, and when the connection is lost or restored. */
function Announcer({ chat }: { chat: ChatState }) {
	const before = useRef<{ session: string; turn: TurnItem | undefined; link: string; ready: boolean }>({
		session: "",
		turn: undefined,
		link: "",
		ready: false,
	});
	const [text, setText] = useState("");
	const turn = chat.turns.at(-1);
	const link = connectionOf(chat).state;
	useEffect(() => {
		const last = before.current;
		before.current = { session: chat.session, turn, link, ready: chat.phase === "ready" };
		// The turns that were there when the session was opened are not announced.
		if (last.session !== chat.session || !last.ready) return;
		if (turn && turn !== last.turn) {
			const said = announcement(last.turn, turn);
			if (said) return setText(said);
		}
		if (link === "reconnecting" && last.link === "live") setText("Connection lost. Reconnecting.");
		if (link === "live" && last.link === "reconnecting") setText("Connected again.");
	}, [chat.session, chat.phase, turn, link]);
	return (
		<div class="sr" role="status" aria-live="polite">
			{text || null}
		</div>
	);
}
