/** The side of the page: links to the pages, pending approvals, and the sessions, most recent first. */

import { toNexusError } from "@nexus-stream/protocol";
import type { SessionJson } from "@nexus-stream/protocol/api";
import { useEffect, useRef, useState } from "preact/hooks";
import { approvalTitle } from "../chat/approvals.ts";
import { liveTurnOf } from "../chat/chat.ts";
import { sessionTitle } from "../chat/words.ts";
import { isOrdinary, partnerOf, sessionName } from "../chat/writer.ts";
import { Button, Icon, type IconName } from "../ui/element.tsx";
import { ageText, plural } from "../ui/format.ts";
import type { SessionList } from "./api.ts";
import type { Theme, WebApp } from "./app.ts";
import { formatRoute, type PageRoute } from "./route.ts";

export function Sessions({ app }: { app: WebApp }) {
	const { drawer, route, list, theme } = app.state;
	const isOpen = drawer.value;
	const close = useRef<HTMLButtonElement>(null);
	useEffect(() => {
		if (isOpen) close.current?.focus();
	}, [isOpen]);
	return (
		<div class="sessions">
			<div class="row sessions-head">
				<span class="mark brand">
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
			<PageLinks route={route.value} />
			<Pending list={list.value} />
			<nav aria-label="Sessions">
				<Button class="new-session" icon="plus" onClick={() => app.newSession()} text="New session" />
				<Rows app={app} />
			</nav>
			<div class="sessions-foot">
				<ThemeButton theme={theme.value} onChange={(next) => app.setTheme(next)} />
				<SignOut app={app} />
			</div>
		</div>
	);
}

function Rows({ app }: { app: WebApp }) {
	const { route, list, chat: open } = app.state;
	const { sessions, more } = list.value;
	const chat = open.value?.view.value;
	// On other pages the list is only a way back.
	const isChatShown = route.value.name === "chat" || route.value.name === "run";
	const current = isChatShown ? chat?.session : undefined;
	const rows = sessions.filter((row) => isOrdinary(row) || row.session === chat?.session);
	// The open session is not listed when it is new or older than the list.
	const isUnlisted = chat !== undefined && !rows.some(({ session }) => session === chat.session);
	const isLive = chat !== undefined && liveTurnOf(chat) !== undefined;
	const now = Date.now();
	return (
		<ul>
			{isUnlisted && (
				<Row
					session={chat.session}
					name={sessionTitle({ sessions, chat })}
					hint={chat.session}
					isCurrent={chat.session === current}
					isLive={false}
					meta=""
				/>
			)}
			{rows.map((row) => (
				<Row
					key={row.session}
					session={row.session}
					name={sessionName(row)}
					hint={row.title === "" ? row.session : `${row.session}: ${row.title}`}
					isCurrent={row.session === current}
					isLive={row.session === chat?.session ? isLive : row.live_run_id !== undefined}
					meta={metaOf(row, now)}
				/>
			))}
			{more && (
				<li>
					<Button class="quiet older-sessions" onClick={() => app.showOlderSessions()} text="Show older sessions" />
				</li>
			)}
		</ul>
	);
}

const metaOf = (row: SessionJson, now: number): string =>
	[partnerOf(row)?.origin, row.turns > 0 && ageText(row.updated_at, now), row.turns > 0 && plural(row.turns, "turn")]
		.filter(Boolean)
		.join(" · ");

interface RowProps {
	session: string;
	name: string;
	/** The label of the session and its first message. */
	hint: string;
	meta: string;
	isCurrent: boolean;
	isLive: boolean;
}

const Row = ({ session, name, hint, meta, isCurrent, isLive }: RowProps) => (
	<li>
		<a href={formatRoute({ name: "chat", session })} aria-current={isCurrent ? "page" : undefined} title={hint}>
			<span class="cut row-title" dir="auto">
				{name}
			</span>
			<span class="row-meta">
				{isLive && (
					<span class="mark live-mark">
						<i /> live
					</span>
				)}
				{meta}
			</span>
		</a>
	</li>
);

/** Approvals and questions that wait for a person, in any session. */
const Pending = ({ list: { pending, sessions } }: { list: SessionList }) =>
	pending.length === 0 ? null : (
		<section class="waiting-for-you" aria-label="Waiting for you">
			<h2>Waiting for you</h2>
			<ul>
				{pending.map(({ id, session, tool, kind, text }) => (
					<li key={id}>
						<a href={formatRoute({ name: "chat", session })} title={text}>
							<span dir="auto">{kind === "approval" ? approvalTitle(kind, tool) : text}</span>
							<small dir="auto">{nameIn(sessions, session)}</small>
						</a>
					</li>
				))}
			</ul>
		</section>
	);

function nameIn(sessions: SessionList["sessions"], label: string): string {
	const row = sessions.find(({ session }) => session === label);
	return row ? sessionName(row) : label;
}

interface PageLink {
	name: string;
	icon: IconName;
	route: PageRoute;
	/** The routes that belong to the page. */
	of: readonly PageRoute["name"][];
}

const PAGES: readonly PageLink[] = [
	{ name: "Chat", icon: "chat", route: { name: "home" }, of: ["home", "chat", "run"] },
	{ name: "Lab", icon: "flask", route: { name: "lab" }, of: ["lab"] },
	{ name: "Adapters", icon: "plug", route: { name: "adapters" }, of: ["adapters"] },
	{ name: "Workflows", icon: "graph", route: { name: "workflows" }, of: ["workflows", "workflow"] },
	{ name: "Memory", icon: "thought", route: { name: "memory" }, of: ["memory"] },
];

const PageLinks = ({ route }: { route: PageRoute }) => (
	<nav class="pages" aria-label="Pages">
		{PAGES.map(({ name, icon, route: to, of }) => (
			<a key={name} href={formatRoute(to)} aria-current={of.includes(route.name) ? "page" : undefined}>
				<Icon name={icon} /> {name}
			</a>
		))}
	</nav>
);

const THEMES = {
	auto: { next: "light", icon: "auto", name: "System colours" },
	light: { next: "dark", icon: "sun", name: "Light" },
	dark: { next: "auto", icon: "moon", name: "Dark" },
} as const;

function ThemeButton({ theme, onChange }: { theme: Theme; onChange(theme: Theme): void }) {
	const { next, icon, name } = THEMES[theme];
	return (
		<Button class="quiet theme" icon={icon} onClick={() => onChange(next)} title="Change the colours" text={name} />
	);
}

function SignOut({ app }: { app: WebApp }) {
	const [failure, setFailure] = useState<string>();
	const [isBusy, setBusy] = useState(false);
	const signOut = async () => {
		setBusy(true);
		try {
			await app.signOut();
		} catch (cause) {
			setFailure(toNexusError(cause).message);
			setBusy(false);
		}
	};
	return (
		<Button
			class="quiet sign-out"
			icon={failure === undefined ? "leave" : "warn"}
			disabled={isBusy}
			onClick={() => void signOut()}
			title={failure ?? "Sign this browser out"}
			text={failure === undefined ? "Sign out" : "Try again"}
		/>
	);
}
