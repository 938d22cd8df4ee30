/** The page: sign-in, or the sessions beside what is open. */

import type { PhaseJson } from "@nexus-stream/protocol";
import { useEffect, useRef } from "preact/hooks";
import { Adapters } from "../adapters/adapters-page.tsx";
import { type ChatState, liveTurnOf } from "../chat/chat.ts";
import { drawnText } from "../chat/drawn-text.ts";
import { Chat } from "../chat/view/chat.tsx";
import { partnerOf } from "../chat/writer.ts";
import { Inspector } from "../inspector/inspector.tsx";
import { Lab } from "../lab/lab-page.tsx";
import { Memory } from "../memory/memory-page.tsx";
import { Head } from "../ui/head.tsx";
import { Workflow } from "../workflows/workflow-page.tsx";
import { Workflows } from "../workflows/workflows-page.tsx";
import type { WebApp } from "./app.ts";
import { Sessions } from "./sessions.tsx";
import { SignIn } from "./sign-in.tsx";
import type { AppState } from "./store.ts";
import { connectionOf, openSessionOf, phaseWords, sessionTitle } from "./words.ts";

export function Page({ state, app }: { state: AppState; app: WebApp }) {
	useTitle(state);
	useArrival(state);
	useEscape(state, app);
	useDrawer(state.drawer, app);
	if (state.auth === "asking") return <p class="note starting">Connecting…</p>;
	if (state.auth === "out") return <SignIn error={state.authError} app={app} />;
	return (
		<div class="page" data-drawer={state.drawer ? "open" : "closed"}>
			{!state.drawer && (
				<button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
					Skip to the content
				</button>
			)}
			<Sessions state={state} app={app} />
			{/* biome-ignore lint/a11y/noStaticElementInteractions: the drawer also has a close button for the keyboard */}
			{/* biome-ignore lint/a11y/useKeyWithClickEvents: see above */}
			<div class="veil" onClick={() => app.setDrawer(false)} />
			<main id="main" tabIndex={-1} inert={state.drawer}>
				<Open state={state} app={app} />
			</main>
		</div>
	);
}

/** What the address points at. */
function Open({ state, app }: { state: AppState; app: WebApp }) {
	const { route, inspector, lab, adapters, memory, workflows, workflow, chat } = state;
	if (route.name === "run" && inspector) return <Inspector key={inspector.runId} inspector={inspector} app={app} />;
	if (route.name === "lab" && lab) return <Lab lab={lab} engine={state.engine} app={app} />;
	if (route.name === "adapters" && adapters) return <Adapters adapters={adapters} app={app} />;
	if (route.name === "memory" && memory) return <Memory memory={memory} app={app} />;
	if (route.name === "workflows" && workflows) return <Workflows workflows={workflows} app={app} />;
	if (route.name === "workflow" && workflow) return <Workflow key={workflow.workflowId} view={workflow} app={app} />;
	return (
		<>
			<ChatHead state={state} app={app} />
			{chat && (
				<Chat
					chat={chat}
					engine={state.engine}
					scripted={state.scripted === true}
					partner={partnerOf(openSessionOf(state) ?? {})}
					pending={state.pending ?? []}
					app={app}
				/>
			)}
		</>
	);
}

function ChatHead({ state, app }: { state: AppState; app: WebApp }) {
	const { chat } = state;
	const partner = partnerOf(openSessionOf(state) ?? {});
	return (
		<Head app={app} title={sessionTitle(state)}>
			{partner && <span class="place">{partner.origin}</span>}
			{chat?.works && <Phase phase={chat.works} />}
			{chat && <Link chat={chat} app={app} />}
		</Head>
	);
}

/** What the session works on, where its engine knows phases. */
const Phase = ({ phase }: { phase: PhaseJson }) => (
	<span class="phase" title={phaseWords(phase)}>
		<span class="sr">Phase: </span>
		{phase.name}
	</span>
);

function Link({ chat, app }: { chat: ChatState; app: WebApp }) {
	const { state, label } = connectionOf(chat);
	if (chat.phase !== "ready" || (state === "paused" && chat.link === "stopped")) return null;
	const badge = (
		<span class="link-state" data-state={state}>
			<i /> {label}
		</span>
	);
	if (state !== "reconnecting" && state !== "cut") return badge;
	return (
		<button type="button" class="quiet" onClick={state === "cut" ? app.reload : app.reconnect} title="Try now">
			{badge}
		</button>
	);
}

/** Escape closes what lies on top; with nothing on top it stops the answer. */
function useEscape(state: AppState, app: WebApp): void {
	const { drawer } = state;
	const chatting = state.route.name === "chat";
	useEffect(() => {
		const onKeyDown = (event: KeyboardEvent) => {
			if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
			if (drawer) app.setDrawer(false);
			else if (chatting) app.stop();
		};
		addEventListener("keydown", onKeyDown);
		return () => removeEventListener("keydown", onKeyDown);
	}, [app, drawer, chatting]);
}

/** While the drawer is open nothing behind it can be reached; afterwards one is where it was opened. */
function useDrawer(drawer: boolean, app: WebApp): void {
	useEffect(() => {
		if (!drawer) return undefined;
		const wide = matchMedia("(min-width: 821px)");
		const close = () => app.setDrawer(false);
		wide.addEventListener("change", close);
		return () => {
			wide.removeEventListener("change", close);
			document.querySelector<HTMLElement>(".open-drawer")?.focus();
		};
	}, [drawer, app]);
}

/** The way to another view goes with the view it was in: the focus arrives with the person, and a screen reader says where. */
function useArrival({ route }: AppState): void {
	const place = route.name === "run" ? route.runId : route.name === "workflow" ? route.workflowId : route.name;
	const before = useRef(place);
	useEffect(() => {
		if (before.current === place) return;
		before.current = place;
		if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
	}, [place]);
}

function useTitle(state: AppState): void {
	const live = state.chat !== undefined && liveTurnOf(state.chat) !== undefined;
	const title = titleOf(state);
	useEffect(() => {
		document.title = drawnText(`${live ? "● " : ""}${title ? `${title} · ` : ""}Nexus`);
	}, [live, title]);
}

function titleOf(state: AppState): string | undefined {
	const { route, chat } = state;
	if (route.name === "run") return `Run ${route.runId}`;
	if (route.name === "lab") return "Channel lab";
	if (route.name === "adapters") return "Adapters";
	if (route.name === "memory") return "Memory";
	if (route.name === "workflows") return "Workflows";
	if (route.name === "workflow") return state.workflow?.workflow?.name || `Workflow ${route.workflowId}`;
	return chat && sessionTitle(state);
}
