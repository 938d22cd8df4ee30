/** The side of the page: the way to the other pages, and the sessions, most recent first, with a mark where an answer is being written. */

import type { ApprovalJson, SessionJson } from "@nexus-stream/protocol";
import { useEffect, useRef } from "preact/hooks";
import { approvalTitle } from "../chat/approvals.ts";
import { liveTurnOf } from "../chat/chat.ts";
import { partnerOf, sessionName } from "../chat/writer.ts";
import { Icon } from "../ui/icon.tsx";
import type { WebApp } from "./app.ts";
import { Pages } from "./pages.tsx";
import { formatRoute } from "./route.ts";
import { SignOut } from "./sign-out.tsx";
import { type AppState, isOrdinary } from "./store.ts";
import { ThemeButton } from "./theme-button.tsx";
import { ageText, plural, sessionTitle } from "./words.ts";

export function Sessions({ state, app }: { state: AppState; app: WebApp }) {
	const close = useRef<HTMLButtonElement>(null);
	useEffect(() => {
		if (state.drawer) close.current?.focus();
	}, [state.drawer]);
	const open = state.chat?.session;
	// Elsewhere the list is only a way back.
	const current = state.route.name === "chat" || state.route.name === "run" ? open : undefined;
	const now = Date.now();
	const rows = state.sessions.filter((row) => isOrdinary(row) || row.session === open);
	// It may be new, or older than what is listed.
	const isUnlisted = open !== undefined && !rows.some(({ session }) => session === open);
	return (
		<div class="sessions">
			<div class="sessions-head">
				<span class="brand">
					<img src="/icon.svg" alt="" width="22" height="22" /> Nexus
				</span>
				<button
					type="button"
					ref={close}
					class="round close-drawer"
					onClick={() => app.setDrawer(false)}
					aria-label="Close the list"
				>
					<Icon name="cross" />
				</button>
			</div>
			<Pages route={state.route} />
			<Pending pending={state.pending ?? []} state={state} />
			<nav aria-label="Sessions">
				<button type="button" class="new-session" onClick={app.newSession}>
					<Icon name="plus" /> New session
				</button>
				<ul>
					{isUnlisted && (
						<Row
							session={open}
							name={sessionTitle(state)}
							hint={open}
							current={open === current}
							live={false}
							meta=""
						/>
					)}
					{rows.map((row) => {
						const isCurrent = row.session === current;
						const live =
							row.session === open && state.chat ? liveTurnOf(state.chat) !== undefined : row.live_run_id !== undefined;
						return (
							<Row
								key={row.session}
								session={row.session}
								name={sessionName(row)}
								hint={row.title === "" ? row.session : `${row.session}: ${row.title}`}
								current={isCurrent}
								live={live}
								meta={metaOf(row, now)}
							/>
						);
					})}
					{state.moreSessions && (
						<li>
							<button type="button" class="quiet older-sessions" onClick={app.olderSessions}>
								Show older sessions
							</button>
						</li>
					)}
				</ul>
			</nav>
			<div class="sessions-foot">
				<ThemeButton theme={state.theme} onChange={app.setTheme} />
				<SignOut app={app} />
			</div>
		</div>
	);
}

const metaOf = (row: SessionJson, now: number): string =>
	[partnerOf(row)?.origin, row.turns > 0 && ageText(row.updated_at, now), row.turns > 0 && plural(row.turns, "turn")]
		.filter(Boolean)
		.join(" · ");

/** What waits for a person in any session. */
const Pending = ({ pending, state }: { pending: readonly ApprovalJson[]; state: AppState }) =>
	pending.length === 0 ? null : (
		<section class="waiting-for-you" aria-label="Waiting for you">
			<h2>Waiting for you</h2>
			<ul>
				{pending.map(({ id, session, tool, kind, text }) => (
					<li key={id}>
						<a href={formatRoute({ name: "chat", session })} title={text}>
							<span dir="auto">{kind === "approval" ? approvalTitle(kind, tool) : text}</span>
							<small dir="auto">{nameIn(state, session)}</small>
						</a>
					</li>
				))}
			</ul>
		</section>
	);

function nameIn({ sessions }: AppState, label: string): string {
	const row = sessions.find(({ session }) => session === label);
	return row ? sessionName(row) : label;
}

interface RowProps {
	session: string;
	name: string;
	/** Which session it is, and how it began. */
	hint: string;
	meta: string;
	current: boolean;
	live: boolean;
}

const Row = ({ session, name, hint, meta, current, live }: RowProps) => (
	<li>
		<a href={formatRoute({ name: "chat", session })} aria-current={current ? "page" : undefined} title={hint}>
			<span class="row-title" dir="auto">
				{name}
			</span>
			<span class="row-meta">
				{live && (
					<span class="live-mark">
						<i /> live
					</span>
				)}
				{meta}
			</span>
		</a>
	</li>
);
