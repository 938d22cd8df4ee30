/** The open session: its turns, newest at the bottom, and the place to write. */

import type { ApprovalJson } from "@nexus-stream/protocol";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { WebApp } from "../../app/app.ts";
import { connectionOf } from "../../app/words.ts";
import { Icon } from "../../ui/icon.tsx";
import { type ChatState, decisionsOf, liveTurnOf, threadOf, waitingOf } from "../chat.ts";
import { chatPrompts } from "../prompts.ts";
import { followEnd, STUCK, stepStick } from "../stick.ts";
import type { Writer } from "../writer.ts";
import { Announcer } from "./announcer.tsx";
import { backToWriting, Composer } from "./composer.tsx";
import { EmptyState } from "./empty-state.tsx";
import { questionsOf, Turn, UnansweredMessage, Waiting } from "./turn.tsx";

/** Closer to the end than this counts as being there. */
const AT_END_PX = 48;

export interface ChatProps {
	chat: ChatState;
	/** What answers, once that is known. */
	engine: string | undefined;
	/** No model answers, but a script. */
	scripted: boolean;
	/** What waits for a person, in any session. */
	pending: readonly ApprovalJson[];
	/** Whom the session is with, if not only with the owner. */
	partner: Writer | undefined;
	app: WebApp;
}

export function Chat({ chat, engine, scripted, pending, partner, app }: ChatProps) {
	const live = liveTurnOf(chat);
	const waiting = waitingOf(chat);
	const thread = threadOf(chat);
	const newest = chat.turns.at(-1);
	const onSeen = useCallback((runId: string) => app.loadFrames(runId), [app]);
	const scroll = useStickToEnd(chat);
	/** For buttons that are gone once they have been pressed. */
	const thenWrite =
		<Given extends unknown[]>(act: (...given: Given) => void) =>
		(...given: Given) => {
			act(...given);
			backToWriting();
		};
	const empty = chat.phase === "ready" && thread.length === 0 && waiting.length === 0;
	return (
		<div class="chat" data-link={connectionOf(chat).state}>
			<div class="scroll" ref={scroll.box} onScroll={scroll.onScroll}>
				<div class="thread" ref={scroll.content}>
					{chat.older !== "none" && <Older loading={chat.older === "loading"} onClick={app.loadOlder} />}
					{chat.phase === "loading" && <p class="note">Loading…</p>}
					{chat.phase === "failed" && <LoadFailed message={chat.error} onRetry={app.reload} />}
					{empty && <EmptyState prompts={chatPrompts(engine, scripted)} onPick={thenWrite(app.send)} />}
					{thread.map((item) =>
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
								app={app}
							/>
						) : (
							<UnansweredMessage key={item.event.event_id} event={item.event} />
						),
					)}
					{waiting.map((message) => (
						<Waiting
							key={message.key}
							message={message}
							onRetry={thenWrite(app.retry)}
							onDiscard={thenWrite(app.discard)}
							onCancel={app.cancel}
						/>
					))}
				</div>
			</div>
			<div class="dock">
				{scroll.away && (
					<button type="button" class="jump" onClick={thenWrite(scroll.toEnd)}>
						<Icon name="down" /> Jump to latest
					</button>
				)}
				<Composer
					session={chat.session}
					live={live !== undefined}
					stopping={live?.stopping === true}
					onSend={(text) => {
						app.send(text);
						scroll.toEnd();
					}}
					onStop={thenWrite(app.stop)}
				/>
				{partner && <Whither partner={partner} />}
				{scripted && <p class="scripted">Scripted: no model answers here.</p>}
			</div>
			<Announcer chat={chat} />
		</div>
	);
}

/** Where the owner's words go in a session that somebody else began. */
const Whither = ({ partner: { name, channel, origin: place } }: { partner: Writer }) => (
	<p class="scripted whither">
		{channel === undefined
			? `Session of ${name} (${place}). What you write is answered here, with its history as context.`
			: `You write to the agent, with the history of ${name} as context. The answer stays here: nothing is sent to ${place}.`}
	</p>
);

const pendingOf = (pending: readonly ApprovalJson[], runId: string): string =>
	pending
		.filter((asked) => asked.run_id === runId)
		.map(({ id }) => id)
		.join();

/** Follows the end while the reader is there, and leaves them alone when they are not. */
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
	// Pictures and late blocks change the height without a new state.
	useEffect(() => {
		if (!content.current) return undefined;
		const observer = new ResizeObserver(follow);
		observer.observe(content.current);
		return () => observer.disconnect();
	}, []);
	// Older turns come in above: what the reader looks at must not move.
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

/** Not disabled while it loads: it would lose the focus of a person who goes on with it. */
const Older = ({ loading, onClick }: { loading: boolean; onClick(): void }) => (
	<button type="button" class="quiet older" onClick={onClick} aria-disabled={loading}>
		{loading ? "Loading…" : "Show older messages"}
	</button>
);

const LoadFailed = ({ message, onRetry }: { message: string | undefined; onRetry(): void }) => (
	<div class="outcome" data-tone="bad" role="alert">
		<Icon name="warn" />
		<span>
			<strong>This session could not be loaded.</strong> {message}
		</span>
		<button type="button" class="quiet" onClick={onRetry}>
			Try again
		</button>
	</div>
);
