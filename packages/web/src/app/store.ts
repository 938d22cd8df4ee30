/** The page's whole state and the one place that changes it. Readers are told at most once per animation frame. */

import type { ApprovalJson, SessionJson } from "@nexus-stream/protocol";
import type { AdaptersView } from "../adapters/adapters.ts";
import { type ChatAction, type ChatState, reduceChat } from "../chat/chat.ts";
import type { ScheduleFrame } from "../chat/frame-clock.ts";
import type { InspectorState } from "../inspector/inspect.ts";
import type { LabView } from "../lab/lab.ts";
import type { MemoryView } from "../memory/memory.ts";
import type { WorkflowView } from "../workflows/workflow.ts";
import type { WorkflowsView } from "../workflows/workflows.ts";
import type { PageRoute } from "./route.ts";

export type Theme = "auto" | "light" | "dark";

export interface AppState {
	readonly auth: "asking" | "in" | "out";
	readonly authError?: string;
	readonly route: PageRoute;
	readonly sessions: readonly SessionJson[];
	/** What answers; undefined until the daemon has said. */
	readonly engine?: string;
	/** No model answers, but a script. */
	readonly scripted?: boolean;
	/** There are older ones than these. */
	readonly moreSessions: boolean;
	readonly chat?: ChatState;
	readonly inspector?: InspectorState;
	readonly lab?: LabView;
	readonly adapters?: AdaptersView;
	readonly memory?: MemoryView;
	readonly workflows?: WorkflowsView;
	readonly workflow?: WorkflowView;
	/** What somebody has to decide, in any session. */
	readonly pending?: readonly ApprovalJson[];
	readonly theme: Theme;
	/** On a narrow screen the list of sessions is a drawer. */
	readonly drawer: boolean;
}

export type Action =
	| { type: "signed-in" }
	| { type: "signed-out"; error?: string }
	| { type: "route"; route: PageRoute }
	| {
			type: "sessions";
			sessions: readonly SessionJson[];
			more: boolean;
			engine?: string;
			scripted?: boolean;
			pending?: readonly ApprovalJson[];
	  }
	| { type: "open-chat"; chat: ChatState }
	/** Ignored when another session has been opened meanwhile. */
	| { type: "chat"; session: string; action: ChatAction }
	| { type: "inspector"; inspector: InspectorState | undefined }
	| { type: "lab"; lab: LabView }
	| { type: "adapters"; adapters: AdaptersView }
	| { type: "memory"; memory: MemoryView }
	| { type: "workflows"; workflows: WorkflowsView }
	| { type: "workflow"; workflow: WorkflowView }
	| { type: "theme"; theme: Theme }
	| { type: "drawer"; open: boolean };

export function reduce(state: AppState, action: Action): AppState {
	switch (action.type) {
		case "signed-in": {
			const { authError: _, ...rest } = state;
			return { ...rest, auth: "in" };
		}
		case "signed-out":
			return { ...state, auth: "out", ...(action.error !== undefined && { authError: action.error }) };
		case "route":
			return { ...state, route: action.route, drawer: false };
		case "sessions":
			return withSessions(state, action);
		case "open-chat":
			return { ...state, chat: action.chat };
		case "chat":
			if (state.chat?.session !== action.session) return state;
			return { ...state, chat: reduceChat(state.chat, action.action) };
		case "inspector":
			return withInspector(state, action.inspector);
		case "lab":
			return { ...state, lab: action.lab };
		case "adapters":
			return { ...state, adapters: action.adapters };
		case "memory":
			return { ...state, memory: action.memory };
		case "workflows":
			return { ...state, workflows: action.workflows };
		case "workflow":
			return { ...state, workflow: action.workflow };
		case "theme":
			return { ...state, theme: action.theme };
		case "drawer":
			return { ...state, drawer: action.open };
		default:
			return action satisfies never;
	}
}

function withSessions(state: AppState, action: Extract<Action, { type: "sessions" }>): AppState {
	const { sessions, more, engine, scripted = false, pending } = action;
	const known = { ...(engine !== undefined && { engine, scripted }), ...(pending && { pending }) };
	return { ...state, sessions, moreSessions: more, ...known };
}

function withInspector(state: AppState, inspector: InspectorState | undefined): AppState {
	const { inspector: _, ...rest } = state;
	return inspector ? { ...rest, inspector } : rest;
}

/** A run of the channel lab has a session of its own, which nobody goes on with. */
export const isOrdinary = ({ session }: Pick<SessionJson, "session">): boolean => !session.startsWith("lab_");

export interface AppStore {
	readonly state: AppState;
	dispatch(action: Action): void;
	subscribe(listener: () => void): void;
}

export function createStore(initial: AppState, schedule: ScheduleFrame): AppStore {
	let state = initial;
	let due = false;
	const listeners: (() => void)[] = [];
	const notify = () => {
		due = false;
		for (const listener of listeners) listener();
	};
	return {
		get state() {
			return state;
		},
		dispatch(action) {
			const next = reduce(state, action);
			if (next === state) return;
			state = next;
			if (due) return;
			due = true;
			schedule(notify);
		},
		subscribe: (listener) => void listeners.push(listener),
	};
}
