/** The input of the chat: Enter sends, Shift+Enter starts a new line, Escape stops the answer. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../../ui/icon.tsx";

export interface ComposerProps {
	session: string;
	/** A run is live: it can be stopped, and a message sent now is queued. */
	live: boolean;
	stopping: boolean;
	onSend(text: string): void;
	onStop(): void;
}

const draftKey = (session: string) => `nexus.draft.${session}`;

export function Composer({ session, live, stopping, onSend, onStop }: ComposerProps) {
	const field = useRef<HTMLTextAreaElement>(null);
	const [text, setText] = useState("");
	const change = (value: string) => {
		setText(value);
		if (value === "") sessionStorage.removeItem(draftKey(session));
		else sessionStorage.setItem(draftKey(session), value);
	};
	useEffect(() => {
		setText(sessionStorage.getItem(draftKey(session)) ?? "");
		backToWriting();
	}, [session]);
	useEffect(() => fit(field.current), [text]);
	const submit = () => {
		const message = text.trim();
		if (message === "") return;
		change("");
		onSend(message);
		field.current?.focus();
	};
	const onKeyDown = (event: KeyboardEvent) => {
		// An input method uses Enter to choose a word.
		if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
		event.preventDefault();
		submit();
	};
	return (
		<form
			class="composer"
			onSubmit={(event) => {
				event.preventDefault();
				submit();
			}}
		>
			<textarea
				ref={field}
				rows={1}
				value={text}
				onInput={(event) => change(event.currentTarget.value)}
				onKeyDown={onKeyDown}
				placeholder={live ? "Next message…" : "Write a message…"}
				dir="auto"
				aria-label="Message"
				enterkeyhint="send"
			/>
			<div class="composer-buttons">
				{live && (
					<button type="button" class="stop" onClick={onStop} disabled={stopping} title="Stop (Esc)">
						<Icon name="stop" />
						<span>{stopping ? "Stopping…" : "Stop"}</span>
					</button>
				)}
				<button type="submit" class="primary send" disabled={text.trim() === ""} aria-label="Send" title="Send (Enter)">
					<Icon name="send" />
				</button>
			</div>
		</form>
	);
}

/** Focuses the composer after the focused element disappeared; not on touch screens, where that would open the keyboard. */
export function backToWriting(): void {
	if (matchMedia("(hover: hover)").matches) document.querySelector<HTMLElement>(".chat textarea")?.focus();
}

/** Grows with its text; the style sheet sets the limit. */
function fit(field: HTMLTextAreaElement | null): void {
	if (!field) return;
	field.style.height = "auto";
	field.style.height = `${field.scrollHeight}px`;
}
