/** The shell of the page: sign-in, navigation, the list of sessions, and the other tabs. */

import { newId, toNexusError } from "@nexus-stream/protocol";
import { signal } from "@preact/signals";
import { liveTurnOf } from "../chat/chat.ts";
import type { ChatContext } from "../chat/chat-model.ts";
import { ChatPage } from "../chat/session-feed.ts";
import { isOrdinary, newSessionLabel } from "../chat/writer.ts";
import { after, onNextFrame } from "../ui/timing.ts";
import { api, NO_SESSIONS, readSessionList } from "./api.ts";
import { type OpenPage, PageOpener } from "./pages.tsx";
import { formatRoute, type PageRoute, parseRoute, signInCodeOf } from "./route.ts";

const SESSIONS_EVERY_MS = 15_000;
const SESSIONS_PER_PAGE = 50;
/** A browser allows few connections per server, so a hidden tab closes its own after this time. */
const HIDDEN_PAUSE_MS = 60_000;

export interface SignInState {
	readonly phase: "checking" | "in" | "out";
	readonly error?: string;
}

export type AppState = WebApp["state"];

const newLabel = (): string => newSessionLabel(newId("s").slice(2));

export class WebApp {
	readonly state = {
		auth: signal<SignInState>({ phase: "checking" }),
		route: signal(parseRoute(location.hash)),
		list: signal(NO_SESSIONS),
		/** The open session. It stays open while another page is shown. */
		chat: signal<ChatPage | undefined>(undefined),
		/** The page that is shown instead of the chat. */
		page: signal<OpenPage | undefined>(undefined),
		theme: signal(storedTheme()),
		/** On a narrow screen the list of sessions is a drawer. */
		drawer: signal(false),
	};
	readonly #tabs = new BroadcastChannel("nexus");
	readonly #context: ChatContext = {
		onSignedOut: () => this.#onSignedOut(),
		schedule: onNextFrame,
		onRunChange: () => void this.#refresh(),
		onSent: (session) => this.#tabs.postMessage({ session }),
	};
	readonly #pages = new PageOpener(this.#context);
	#cancelPause = () => {};
	#sessionsWanted = SESSIONS_PER_PAGE;
	#lastSession: string | undefined;

	async start(): Promise<void> {
		const { chat } = this.state;
		await this.#arrive();
		// Pasting a printed address into an open tab changes only the part after the `#`.
		addEventListener("hashchange", () => void this.#arrive());
		addEventListener("online", () => chat.peek()?.link("hurry"));
		document.addEventListener("visibilitychange", () => this.#onVisibility());
		setInterval(() => document.visibilityState === "visible" && void this.#refresh(), SESSIONS_EVERY_MS);
		this.#tabs.onmessage = (event: MessageEvent<{ session?: string }>) => {
			void this.#refresh();
			const open = chat.peek();
			if (open && event.data?.session === open.session) open.refreshQueue();
		};
	}

	async signIn(token: string): Promise<void> {
		try {
			await api.signIn({ token });
			await this.#arrive();
		} catch (cause) {
			const { code, message } = toNexusError(cause);
			this.#showSignIn(code === "unauthenticated" ? "That token is not the right one." : message);
		}
	}

	/** Rejects with the daemon's reason. */
	async signOut(): Promise<void> {
		await api.signOut();
		this.#onSignedOut();
	}

	newSession(): void {
		this.#go({ name: "chat", session: newLabel() });
	}

	showOlderSessions(): void {
		this.#sessionsWanted += SESSIONS_PER_PAGE;
		void this.#refresh();
	}

	setTheme(theme: Theme): void {
		applyTheme(theme);
		localStorage.setItem(THEME_KEY, theme);
		this.state.theme.value = theme;
	}

	setDrawer(isOpen: boolean): void {
		this.state.drawer.value = isOpen;
	}

	/** Follows the address; a sign-in code in it is used first. */
	async #arrive(): Promise<void> {
		const code = signInCodeOf(location.hash);
		if (code !== undefined) await this.#signInWithCode(code);
		if (this.state.auth.peek().phase === "in") this.#enter(parseRoute(location.hash));
		else await this.#refresh();
	}

	/** Removes the code from the address bar and the history before it is used. */
	async #signInWithCode(code: string): Promise<void> {
		history.replaceState(null, "", location.pathname + location.search);
		try {
			await api.signIn({ code });
		} catch (cause) {
			this.#showSignIn(toNexusError(cause).message);
		}
	}

	#showSignIn(error?: string): void {
		const { auth } = this.state;
		auth.value = { phase: "out", error: error ?? auth.peek().error };
	}

	/** Closes everything: after the next sign-in it is opened again from the daemon's state. */
	#onSignedOut(): void {
		const { chat } = this.state;
		chat.peek()?.close();
		chat.value = undefined;
		this.#closePage();
		this.#showSignIn();
	}

	#closePage(): void {
		const { page } = this.state;
		page.peek()?.close();
		page.value = undefined;
	}

	/** Reads the list of sessions, which also shows whether the browser is signed in. */
	async #refresh(): Promise<void> {
		const { auth, list } = this.state;
		try {
			const read = await readSessionList(this.#sessionsWanted);
			const { engine, scripted } = read.engine === undefined ? list.peek() : read;
			list.value = { ...read, engine, scripted };
			if (auth.peek().phase === "in") return;
			auth.value = { phase: "in" };
			// Needed too when another tab has signed in meanwhile: a chat without its feed would accept messages and send none.
			this.#enter(parseRoute(location.hash));
		} catch (cause) {
			const { code, message } = toNexusError(cause);
			if (code === "unauthenticated") this.#onSignedOut();
			else if (auth.peek().phase === "checking") this.#showSignIn(message);
			else console.warn("nexus: the sessions could not be read:", message);
		}
	}

	#enter(route: PageRoute): void {
		if (route.name === "home") {
			this.#go(this.#homeRoute(), true);
			return;
		}
		const { state } = this;
		state.route.value = route;
		state.drawer.value = false;
		this.#closePage();
		state.page.value = this.#pages.open(route);
		if (route.name !== "chat" || state.chat.peek()?.session === route.session) return;
		state.chat.peek()?.close();
		this.#lastSession = route.session;
		state.chat.value = new ChatPage(route.session, this.#context);
	}

	#homeRoute(): PageRoute {
		const { sessions } = this.state.list.peek();
		const session = this.#lastSession ?? sessions.find(isOrdinary)?.session ?? newLabel();
		return { name: "chat", session };
	}

	#go(route: PageRoute, replace = false): void {
		const hash = formatRoute(route);
		if (replace) history.replaceState(null, "", hash);
		else if (location.hash !== hash) history.pushState(null, "", hash);
		this.#enter(route);
	}

	#onVisibility(): void {
		const { chat } = this.state;
		this.#cancelPause();
		if (document.visibilityState === "visible") {
			chat.peek()?.link("resume");
			chat.peek()?.link("hurry");
			void this.#refresh();
			return;
		}
		this.#cancelPause = after(HIDDEN_PAUSE_MS, () => {
			const open = chat.peek();
			if (open && !liveTurnOf(open.view.peek())) open.link("pause");
		});
	}
}

export type Theme = "auto" | "light" | "dark";

const THEME_KEY = "nexus.theme";

export function storedTheme(): Theme {
	const theme = localStorage.getItem(THEME_KEY);
	return theme === "light" || theme === "dark" ? theme : "auto";
}

export function applyTheme(theme: Theme): void {
	if (theme === "auto") document.documentElement.removeAttribute("data-theme");
	else document.documentElement.setAttribute("data-theme", theme);
}
