/** The frame around everything: the sign-in, or the list of sessions next to the open page. */

import type { PhaseJson } from "@nexus-stream/protocol/api";
import { useEffect, useRef, useState } from "preact/hooks";
import { liveTurnOf } from "../chat/chat.ts";
import type { ChatPage } from "../chat/session-feed.ts";
import { Chat } from "../chat/view/chat.tsx";
import { connectionOf, openSessionOf, phaseWords, sessionTitle } from "../chat/words.ts";
import { partnerOf } from "../chat/writer.ts";
import { drawnText } from "../ui/drawn-text.ts";
import { Button } from "../ui/element.tsx";
import { Head, OpenDrawer } from "../ui/list-page.tsx";
import { LinkBadge } from "../ui/status.tsx";
import type { SessionList } from "./api.ts";
import type { AppState, WebApp } from "./app.ts";
import { Sessions } from "./sessions.tsx";

export function Shell({ app }: { app: WebApp }) {
	const { auth, drawer } = app.state;
	const isDrawerOpen = drawer.value;
	useTitle(app.state);
	useArrival(app.state);
	useEscape(app);
	useDrawer(isDrawerOpen, app);
	if (auth.value.phase === "checking") return <p class="note starting">Connecting…</p>;
	if (auth.value.phase === "out") return <SignIn error={auth.value.error} app={app} />;
	return (
		<div class="page" data-drawer={isDrawerOpen ? "open" : "closed"}>
			{!isDrawerOpen && (
				<Button class="skip" onClick={() => document.getElementById("main")?.focus()} text="Skip to the content" />
			)}
			<Sessions app={app} />
			{/* biome-ignore lint/a11y/noStaticElementInteractions: the drawer also has a close button for the keyboard */}
			{/* biome-ignore lint/a11y/useKeyWithClickEvents: see above */}
			<div class="veil" onClick={() => app.setDrawer(false)} />
			<main id="main" tabIndex={-1} inert={isDrawerOpen}>
				<OpenDrawer.Provider value={() => app.setDrawer(true)}>
					<Content state={app.state} />
				</OpenDrawer.Provider>
			</main>
		</div>
	);
}

function Content({ state }: { state: AppState }) {
	const list = state.list.value;
	const page = state.page.value;
	const chat = state.chat.value;
	if (page) return page.draw(list.engine);
	return chat ? <ChatContent page={chat} list={list} /> : <Head title={sessionTitle(list)} />;
}

function ChatContent({ page, list }: { page: ChatPage; list: SessionList }) {
	const chat = page.view.value;
	const open = { sessions: list.sessions, chat };
	const partner = partnerOf(openSessionOf(open) ?? {});
	return (
		<>
			<Head title={sessionTitle(open)}>
				{partner && <span class="status place">{partner.origin}</span>}
				{chat.works && <Phase phase={chat.works} />}
				<Link page={page} />
			</Head>
			<Chat page={page} engine={list.engine} scripted={list.scripted} partner={partner} pending={list.pending} />
		</>
	);
}

/** The phase of the session, if its engine has phases. */
const Phase = ({ phase }: { phase: PhaseJson }) => (
	<span class="status phase" title={phaseWords(phase)}>
		<span class="sr">Phase: </span>
		{phase.name}
	</span>
);

function Link({ page }: { page: ChatPage }) {
	const chat = page.view.value;
	const { state, label } = connectionOf(chat);
	if (chat.phase !== "ready" || (state === "paused" && chat.link === "stopped")) return null;
	const badge = <LinkBadge state={state} label={label} />;
	if (state !== "reconnecting" && state !== "cut") return badge;
	const retry = () => (state === "cut" ? page.reload() : page.link("hurry"));
	return (
		<button type="button" class="quiet" onClick={retry} title="Try now">
			{badge}
		</button>
	);
}

/** Escape closes the drawer; without one it stops the answer. */
function useEscape(app: WebApp): void {
	const { drawer, route, chat } = app.state;
	useEffect(() => {
		const onKeyDown = (event: KeyboardEvent) => {
			if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
			if (drawer.peek()) app.setDrawer(false);
			else if (route.peek().name === "chat") void chat.peek()?.runs.stop();
		};
		addEventListener("keydown", onKeyDown);
		return () => removeEventListener("keydown", onKeyDown);
	}, [app, drawer, route, chat]);
}

/** A wide screen closes the drawer. Afterwards the focus returns to the button that opened it. */
function useDrawer(isOpen: boolean, app: WebApp): void {
	useEffect(() => {
		if (!isOpen) return undefined;
		const wide = matchMedia("(min-width: 821px)");
		const close = () => app.setDrawer(false);
		wide.addEventListener("change", close);
		return () => {
			wide.removeEventListener("change", close);
			document.querySelector<HTMLElement>(".open-drawer")?.focus();
		};
	}, [isOpen, app]);
}

/** A link disappears with the view that it was in: then the focus moves to the new view, and a screen reader names it. */
function useArrival({ route: signal }: AppState): void {
	const route = signal.value;
	const place = route.name === "run" ? route.runId : route.name === "workflow" ? route.workflowId : route.name;
	const before = useRef(place);
	useEffect(() => {
		if (before.current === place) return;
		before.current = place;
		if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
	}, [place]);
}

function useTitle({ page, chat: signal, list }: AppState): void {
	const chat = signal.value?.view.value;
	const isLive = chat !== undefined && liveTurnOf(chat) !== undefined;
	const title = page.value ? page.value.title() : chat && sessionTitle({ sessions: list.value.sessions, chat });
	useEffect(() => {
		document.title = drawnText(`${isLive ? "● " : ""}${title ? `${title} · ` : ""}Nexus`);
	}, [isLive, title]);
}

export function SignIn({ error, app }: { error: string | undefined; app: WebApp }) {
	const [token, setToken] = useState("");
	const [busy, setBusy] = useState(false);
	const submit = async (event: Event) => {
		event.preventDefault();
		setBusy(true);
		await app.signIn(token.trim());
		setBusy(false);
	};
	return (
		<main class="sign-in">
			<img src="/icon.svg" alt="" width="44" height="44" />
			<h1>Sign in to Nexus</h1>
			<p>
				Run <code>nexus url</code> where the daemon runs and open the address it prints. Or paste the daemon’s token:
			</p>
			<form onSubmit={(event) => void submit(event)}>
				<label for="token">Token</label>
				<input
					id="token"
					type="password"
					autocomplete="current-password"
					value={token}
					onInput={(event) => setToken(event.currentTarget.value)}
				/>
				<button type="submit" class="primary" disabled={busy || token.trim() === ""}>
					{busy ? "Signing in…" : "Sign in"}
				</button>
			</form>
			{error !== undefined && (
				<p class="sign-in-error" role="alert">
					{error}
				</p>
			)}
		</main>
	);
}
