/** The scaffold of a page: its state as a signal, one polled load, and the actions that its view calls. */

import { toNexusError } from "@nexus-stream/protocol";
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { NoticeWords } from "./status.tsx";
import { type Delay, type ScheduleFrame, startPolling } from "./timing.ts";

/** Passed to every page by the shell. */
export interface PageContext {
	/** The daemon no longer accepts this browser's cookie. */
	onSignedOut(): void;
	schedule: ScheduleFrame;
}

export interface PageView {
	/** The last load failed with this message, so the shown state may be out of date. */
	readonly failure?: string;
	/** The result of the last action. */
	readonly notice?: NoticeWords;
}

/** An open page, as the shell and its view see it. */
export interface PageHandle<View, Actions> {
	readonly view: ReadonlySignal<View>;
	readonly actions: Actions;
	close(): void;
}

export interface PageSource<Actions> {
	/** Reads the page and resolves to the delay before the next read. A rejection becomes the view's `failure`; a load that succeeds clears it. */
	load(): Promise<Delay>;
	/** The delay after a load that failed. */
	retryMs?: () => Delay;
	readonly actions: Actions;
	close?(): void;
}

interface PageOptions<View, Actions> {
	initial: View;
	context: PageContext;
	connect(state: PageState<View>): PageSource<Actions>;
}

/** The state that loads and actions read and change; it is drawn at most once per animation frame. */
export class PageState<View> {
	readonly #view: Signal<View>;
	readonly #context: PageContext;
	#newest: View;
	#isDue = false;
	#isClosed = false;
	/** Loads the page again; set once the page polls. */
	reload: () => void = () => {};

	constructor(initial: View, context: PageContext) {
		this.#view = signal(initial);
		this.#newest = initial;
		this.#context = context;
	}

	get view(): ReadonlySignal<View> {
		return this.#view;
	}

	/** Includes changes that are not drawn yet. */
	get newest(): View {
		return this.#newest;
	}

	get isClosed(): boolean {
		return this.#isClosed;
	}

	change(part: Partial<View>): void {
		this.#newest = { ...this.#newest, ...part };
		if (this.#isDue || this.#isClosed) return;
		this.#isDue = true;
		this.#context.schedule(() => {
			this.#isDue = false;
			if (!this.#isClosed) this.#view.value = this.#newest;
		});
	}

	/** The message of a failed request. An expired sign-in also ends the session of this tab. */
	messageOf(cause: unknown): string {
		const error = toNexusError(cause);
		if (error.code === "unauthenticated" && !this.#isClosed) this.#context.onSignedOut();
		return error.message;
	}

	/** Runs an action of a person: shows what it resolves to, or why it failed, and loads the page again. */
	async act(work: () => Promise<string | undefined>): Promise<void> {
		this.change({ notice: await this.#noticeOf(work) } as PageView as Partial<View>);
		this.reload();
	}

	async #noticeOf(work: () => Promise<string | undefined>): Promise<NoticeWords | undefined> {
		try {
			const text = await work();
			return text === undefined ? undefined : { tone: "quiet", text };
		} catch (cause) {
			return { tone: "bad", text: this.messageOf(cause) };
		}
	}

	close(): void {
		this.#isClosed = true;
	}
}

export function createPage<View extends PageView, Actions>(
	options: PageOptions<View, Actions>,
): PageHandle<View, Actions> {
	const state = new PageState(options.initial, options.context);
	const source = options.connect(state);
	const poller = startPolling(async () => {
		try {
			return await source.load();
		} catch (cause) {
			state.change({ failure: state.messageOf(cause) } as Partial<View>);
			return source.retryMs?.();
		}
	});
	state.reload = poller.now;
	return {
		view: state.view,
		actions: source.actions,
		close() {
			state.close();
			poller.stop();
			source.close?.();
		},
	};
}
