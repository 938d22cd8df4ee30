/** A code listing with its language and a button that copies it. */

import { useEffect, useState } from "preact/hooks";
import { after } from "./frame-clock.ts";
import { Icon } from "./icon.tsx";
import { memo } from "./memo.ts";
import { Scrollable } from "./scrollable.tsx";

const COPIED_MS = 1600;

export const CodeBlock = memo(({ code, lang }: { code: string; lang: string }) => (
	<figure class="code" dir="ltr">
		<figcaption>
			<span>{lang || "text"}</span>
			<CopyButton text={code} what="code" />
		</figcaption>
		<Scrollable as="pre">
			<code>{code}</code>
		</Scrollable>
	</figure>
));

export function CopyButton({ text, what }: { text: string; what: string }) {
	const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
	useEffect(() => (state === "idle" ? undefined : after(COPIED_MS, () => setState("idle"))), [state]);
	const copy = async () => {
		try {
			// Not there at all where the page came over plain HTTP from another machine.
			await navigator.clipboard.writeText(text);
			setState("copied");
		} catch (cause) {
			console.warn("nexus: the clipboard refused:", cause);
			setState("failed");
		}
	};
	const label = state === "idle" ? "Copy" : state === "copied" ? "Copied" : "Not allowed";
	return (
		<button
			type="button"
			class="quiet copy"
			onClick={() => void copy()}
			aria-label={state === "idle" ? `Copy ${what}` : label}
		>
			<Icon name={state === "copied" ? "check" : "copy"} />
			<span>{label}</span>
		</button>
	);
}
