/** A state in words, a notice, and the badge of a live connection. */

import type { ComponentChildren } from "preact";
import { Button, Icon } from "./element.tsx";

export type Tone = "good" | "live" | "quiet" | "warn" | "bad";

export interface Words {
	readonly tone: Tone;
	readonly text: string;
}

export const Status = ({ words }: { words: Words }) => (
	<span class="status" data-tone={words.tone}>
		{words.text}
	</span>
);

export interface NoticeWords {
	readonly tone: "quiet" | "bad";
	readonly text: string;
}

export const Notice = ({ tone, children }: { tone: NoticeWords["tone"]; children: ComponentChildren }) => (
	<div class="outcome" data-tone={tone} role={tone === "bad" ? "alert" : "status"}>
		<Icon name={tone === "bad" ? "warn" : "check"} />
		<span>{children}</span>
	</div>
);

/** Something that could not be loaded, with the way to try again. */
export const FailureNotice = (props: { title: string; children?: ComponentChildren; onRetry(): void }) => (
	<div class="outcome" data-tone="bad" role="alert">
		<Icon name="warn" />
		<span>
			<strong>{props.title}</strong> {props.children}
		</span>
		<Button class="quiet" onClick={props.onRetry} text="Try again" />
	</div>
);

export const LinkBadge = ({ state, label }: { state: string; label: string }) => (
	<span class="fine mark link-state" data-state={state}>
		<i /> {label}
	</span>
);
