/** What a person can do on the page, and the shell around the state: routes, sign-in, the open feed, other tabs. */

import { newId, type SessionJson, toNexusError } from "@nexus-stream/protocol";
import { type AdaptersView, NEW_ADAPTERS } from "../adapters/adapters.ts";
import { type AdaptersFeed, openAdapters } from "../adapters/adapters-feed.ts";
import type { ApprovalActions } from "../chat/approvals.ts";
import { type ChatState, liveTurnOf, newChat } from "../chat/chat.ts";
import { onNextFrame } from "../chat/frame-clock.ts";
import { openSession, type SessionFeed } from "../chat/session-feed.ts";
import { keepUnsent, unsentOf } from "../chat/unsent.ts";
import { newSessionLabel } from "../chat/writer.ts";
import { openInspector } from "../inspector/inspector-feed.ts";
import { type LabView, NEW_LAB } from "../lab/lab.ts";
import { type LabFeed, openLab } from "../lab/lab-feed.ts";
import { type MemoryView, NEW_MEMORY } from "../memory/memory.ts";
import { type MemoryFeed, openMemory } from "../memory/memory-feed.ts";
import { newWorkflowView, type WorkflowView } from "../workflows/workflow.ts";
import { openWorkflow, type WorkflowFeed } from "../workflows/workflow-feed.ts";
import { NEW_WORKFLOWS, type WorkflowsView } from "../workflows/workflows.ts";
import { openWorkflows, type WorkflowsFeed } from "../workflows/workflows-feed.ts";
import { api } from "./api.ts";
import { formatRoute, type PageRoute, parseRoute, signInCodeOf } from "./route.ts";
import { type AppStore, isOrdinary, type Theme } from "./store.ts";

const SESSIONS_EVERY_MS = 15_000;
const SESSIONS_PER_PAGE = 50;
/** What the daemon gives at once. */
const SESSIONS_PER_CALL_MAX = 200;
/** A browser allows few connections per server: a tab that nobody looks at gives its own back. */
const HIDDEN_PAUSE_MS = 60_000;
const THEME_KEY = "nexus.theme";

export interface WebApp {
	signIn(token: string): Promise<void>;
	/** Rejects with why it cannot. */
	signOut(): Promise<void>;
	go(route: PageRoute): void;
	newSession(): void;
	send(text: string): void;
	retry(key: string, text: string): void;
	discard(key: string): void;
	/** Takes back a message that waits. */
	cancel(eventId: string): void;
	stop(): void;
	loadOlder(): void;
	olderSessions(): void;
	loadFrames(runId: string): void;
	reload(): void;
	reconnect(): void;
	setTheme(theme: Theme): void;
	setDrawer(open: boolean): void;
	/** The channel lab, while it is open. */
	lab(): LabFeed | undefined;
	/** The adapters page, while it is open. */
	adapters(): AdaptersFeed | undefined;
	/** The memory page, while it is open. */
	memory(): MemoryFeed | undefined;
	/** The lists of workflows and jobs, while they are open. */
	workflows(): WorkflowsFeed | undefined;
	/** One workflow, while it is open. */
	workflow(): WorkflowFeed | undefined;
	/** Where the questions of a run are answered. */
	approvalActionsOf(runId: string): Omit<ApprovalActions, "isPending">;
	/** Goes on with a run that was cut off. Rejects with why it cannot. */
	continueRun(runId: string): Promise<void>;
	/** Answers the messages of a run that was cut off from the start. Rejects with why it cannot. */
	retryRun(runId: string): Promise<void>;
	/** Reads again what can be done with a run. */
	refreshRun(runId: string): void;
}

export function createApp(store: AppStore): WebApp & { start(): Promise<void> } {
	const tabs = new BroadcastChannel("nexus");
	let feed: SessionFeed | undefined;
	/** What is open instead of a session. */
	let inspector: { close(): void } | undefined;
	let lab: LabFeed | undefined;
	let adapters: AdaptersFeed | undefined;
	let memory: MemoryFeed | undefined;
	let workflows: WorkflowsFeed | undefined;
	let workflow: WorkflowFeed | undefined;
	let hiddenTimer: ReturnType<typeof setTimeout> | undefined;
	let sessionsWanted = SESSIONS_PER_PAGE;

	/** What was open is opened anew after the sign-in, from the daemon's state then. */
	function signedOut(): void {
		feed?.close();
		feed = undefined;
		closeOthers();
		store.dispatch({ type: "signed-out" });
	}

	function closeOthers(): void {
		for (const open of [inspector, lab, adapters, memory, workflows, workflow]) open?.close();
		inspector = undefined;
		lab = undefined;
		adapters = undefined;
		memory = undefined;
		workflows = undefined;
		workflow = undefined;
	}

	/** Written down before another session or a reload takes the place of this one. */
	let outgoing: ChatState["outgoing"] | undefined;
	store.subscribe(() => {
		const { chat } = store.state;
		if (!chat || chat.outgoing === outgoing) return;
		outgoing = chat.outgoing;
		keepUnsent(chat.session, outgoing);
	});

	async function start(): Promise<void> {
		await arrive();
		// Pasting a printed address into an open tab changes only the part behind the `#`.
		addEventListener("hashchange", () => void arrive());
		addEventListener("online", () => feed?.link("hurry"));
		document.addEventListener("visibilitychange", onVisibility);
		setInterval(() => document.visibilityState === "visible" && void refreshSessions(), SESSIONS_EVERY_MS);
		tabs.onmessage = (event: MessageEvent<{ session?: string }>) => {
			void refreshSessions();
			if (event.data?.session === feed?.session) void feed?.refreshQueue();
		};
	}

	/** Goes where the address points, signing in first when it carries a code. */
	async function arrive(): Promise<void> {
		if (signInCodeOf(location.hash) !== undefined) await signInWithCode();
		if (store.state.auth === "in") enter(parseRoute(location.hash));
		else await refreshSessions();
	}

	/** The code is gone from the address bar and the history before anything else happens, whether it worked or not. */
	async function signInWithCode(): Promise<void> {
		const code = signInCodeOf(location.hash);
		if (code === undefined) return;
		history.replaceState(null, "", location.pathname + location.search);
		try {
			await api.signIn({ code });
		} catch (cause) {
			store.dispatch({ type: "signed-out", error: toNexusError(cause).message });
		}
	}

	async function signIn(token: string): Promise<void> {
		try {
			await api.signIn({ token });
			await arrive();
		} catch (cause) {
			const error = toNexusError(cause);
			const message = error.code === "unauthenticated" ? "That token is not the right one." : error.message;
			store.dispatch({ type: "signed-out", error: message });
		}
	}

	async function signOut(): Promise<void> {
		await api.signOut();
		signedOut();
	}

	async function refreshSessions(): Promise<void> {
		try {
			const [read, { approvals }] = await Promise.all([
				readSessions(sessionsWanted),
				api.approvals({ state: "pending" }),
			]);
			store.dispatch({ type: "sessions", ...read, pending: approvals });
			if (store.state.auth === "in") return;
			store.dispatch({ type: "signed-in" });
			// Also when another tab has signed in meanwhile: a page without its feed would take messages and send none.
			enter(parseRoute(location.hash));
		} catch (cause) {
			const error = toNexusError(cause);
			if (error.code === "unauthenticated") signedOut();
			else if (store.state.auth === "asking") store.dispatch({ type: "signed-out", error: error.message });
			else console.warn("nexus: the sessions could not be read:", error.message);
		}
	}

	function enter(route: PageRoute): void {
		if (route.name === "home") {
			go(homeRoute(), true);
			return;
		}
		store.dispatch({ type: "route", route });
		closeOthers();
		if (route.name !== "run") store.dispatch({ type: "inspector", inspector: undefined });
		if (route.name === "run") enterRun(route.runId);
		else if (route.name === "lab") enterLab();
		else if (route.name === "adapters") enterAdapters();
		else if (route.name === "memory") enterMemory();
		else if (route.name === "workflows") enterWorkflows();
		else if (route.name === "workflow") enterWorkflow(route.workflowId);
		else if (feed?.session !== route.session) enterChat(route.session);
	}

	function homeRoute(): PageRoute {
		const { chat, sessions } = store.state;
		const session = chat?.session ?? sessions.find(isOrdinary)?.session ?? newSessionLabel(newId("s").slice(2));
		return { name: "chat", session };
	}

	function enterRun(runId: string): void {
		store.dispatch({ type: "inspector", inspector: { runId, records: [], count: 0, link: "connecting" } });
		inspector = openInspector({
			runId,
			onChange: (state) => store.dispatch({ type: "inspector", inspector: state }),
			onSignedOut: signedOut,
			schedule: onNextFrame,
		});
	}

	function enterLab(): void {
		const before = store.state.lab;
		store.dispatch({ type: "lab", lab: before ?? NEW_LAB });
		const onChange = (view: LabView) => store.dispatch({ type: "lab", lab: view });
		lab = openLab({ before, onChange, onSignedOut: signedOut, schedule: onNextFrame });
	}

	function enterAdapters(): void {
		store.dispatch({ type: "adapters", adapters: NEW_ADAPTERS });
		const onChange = (view: AdaptersView) => store.dispatch({ type: "adapters", adapters: view });
		adapters = openAdapters({ onChange, onSignedOut: signedOut, schedule: onNextFrame });
	}

	function enterMemory(): void {
		store.dispatch({ type: "memory", memory: NEW_MEMORY });
		const onChange = (view: MemoryView) => store.dispatch({ type: "memory", memory: view });
		memory = openMemory({ onChange, onSignedOut: signedOut });
	}

	function enterWorkflows(): void {
		const before = store.state.workflows ?? NEW_WORKFLOWS;
		store.dispatch({ type: "workflows", workflows: before });
		const onChange = (view: WorkflowsView) => store.dispatch({ type: "workflows", workflows: view });
		workflows = openWorkflows({ before, onChange, onSignedOut: signedOut });
	}

	function enterWorkflow(workflowId: string): void {
		store.dispatch({ type: "workflow", workflow: newWorkflowView(workflowId) });
		const onChange = (view: WorkflowView) => store.dispatch({ type: "workflow", workflow: view });
		workflow = openWorkflow({ workflowId, onChange, onSignedOut: signedOut, schedule: onNextFrame });
	}

	function enterChat(session: string): void {
		feed?.close();
		store.dispatch({ type: "open-chat", chat: { ...newChat(session), outgoing: unsentOf(session) } });
		feed = openSession({
			session,
			dispatch: (action) => store.dispatch({ type: "chat", session, action }),
			chat: () => (store.state.chat?.session === session ? store.state.chat : undefined),
			schedule: onNextFrame,
			onSignedOut: signedOut,
			onRunChange: () => void refreshSessions(),
		});
	}

	function go(route: PageRoute, replace = false): void {
		const hash = formatRoute(route);
		if (replace) history.replaceState(null, "", hash);
		else if (location.hash !== hash) history.pushState(null, "", hash);
		enter(route);
	}

	function onVisibility(): void {
		clearTimeout(hiddenTimer);
		if (document.visibilityState === "visible") {
			feed?.link("resume");
			feed?.link("hurry");
			void refreshSessions();
			return;
		}
		hiddenTimer = setTimeout(() => {
			const { chat } = store.state;
			if (chat && !liveTurnOf(chat)) feed?.link("pause");
		}, HIDDEN_PAUSE_MS);
	}

	async function deliver(key: string, text: string): Promise<void> {
		const session = feed?.session;
		await feed?.send(key, text);
		tabs.postMessage({ session });
	}

	async function stop(): Promise<void> {
		const { chat } = store.state;
		const turn = chat && liveTurnOf(chat);
		if (!chat || !turn || turn.stopping) return;
		const { session } = chat;
		const { runId } = turn;
		const tell = (change: { on: boolean; error?: string }) =>
			store.dispatch({ type: "chat", session, action: { type: "stopping", runId, ...change } });
		tell({ on: true });
		try {
			await api.abort(runId);
		} catch (cause) {
			tell({ on: false, error: toNexusError(cause).message });
		}
	}

	return {
		start,
		signIn,
		signOut,
		go,
		newSession: () => go({ name: "chat", session: newSessionLabel(newId("s").slice(2)) }),
		send: (text) => void deliver(newId("msg"), text),
		retry: (key, text) => void deliver(key, text),
		discard: (key) => {
			if (feed) store.dispatch({ type: "chat", session: feed.session, action: { type: "discard", key } });
		},
		cancel: (eventId) => void feed?.cancel(eventId),
		stop: () => void stop(),
		loadOlder: () => void feed?.loadOlder(),
		olderSessions() {
			sessionsWanted += SESSIONS_PER_PAGE;
			void refreshSessions();
		},
		loadFrames: (runId) => feed?.loadFrames(runId),
		reload: () => void feed?.reload(),
		reconnect: () => feed?.link("hurry"),
		setTheme(theme) {
			applyTheme(theme);
			localStorage.setItem(THEME_KEY, theme);
			store.dispatch({ type: "theme", theme });
		},
		setDrawer: (open) => store.dispatch({ type: "drawer", open }),
		lab: () => lab,
		adapters: () => adapters,
		memory: () => memory,
		workflows: () => workflows,
		workflow: () => workflow,
		approvalActionsOf: (runId) => ({
			async decide(id, decision, remember) {
				await api.decideApproval(runId, id, { decision, remember: remember || undefined });
				void refreshSessions();
			},
			async answer(id, answer) {
				await api.answerQuestion(runId, id, { answer });
				void refreshSessions();
			},
		}),
		async continueRun(runId) {
			await api.continue(runId);
			await refreshSessions();
		},
		async retryRun(runId) {
			await api.retry(runId);
			await refreshSessions();
		},
		refreshRun: (runId) => feed?.refreshRun(runId),
	};
}

interface SessionsRead {
	sessions: SessionJson[];
	more: boolean;
	engine?: string;
	scripted?: boolean;
}

/** The newest sessions, and whether there are more. A page is longer than asked for when its last ones were used at the same moment. */
export async function readSessions(wanted: number): Promise<SessionsRead> {
	const sessions: SessionJson[] = [];
	for (;;) {
		const limit = Math.min(SESSIONS_PER_CALL_MAX, wanted - sessions.length);
		const page = await api.sessions({ limit, before: sessions.at(-1)?.updated_at });
		sessions.push(...page.sessions);
		const more = page.sessions.length >= limit;
		const { engine, scripted } = page;
		if (!more || sessions.length >= wanted) return { sessions, more, engine: engine || undefined, scripted };
	}
}

export function storedTheme(): Theme {
	const theme = localStorage.getItem(THEME_KEY);
	return theme === "light" || theme === "dark" ? theme : "auto";
}

export function applyTheme(theme: Theme): void {
	if (theme === "auto") document.documentElement.removeAttribute("data-theme");
	else document.documentElement.setAttribute("data-theme", theme);
}
