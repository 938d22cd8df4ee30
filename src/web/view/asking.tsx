/** A person is asked: whether a tool may act, with all of its arguments, or a question of the agent. */

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { toNexusError } from "../../protocol/protocol.ts";
import { type Asked, askingTitle, type Desk, decidedWords, isOpen, leftWords, settledAsk } from "../asking.ts";
import { backToWriting } from "./composer.tsx";
import { Icon } from "./icon.tsx";
import { Scrollable } from "./scrollable.tsx";

/** Nobody is there where an answer is only looked at. */
export const DeskContext = createContext<Desk | undefined>(undefined);

const TICK_MS = 1000;

export function Asking({ asked, tool }: { asked: Asked; tool: string }) {
	const desk = useContext(DeskContext);
	const now = useSeconds(asked.state === "pending");
	const open = isOpen(asked, now) && desk?.isAsked(asked.id) !== false;
	const title = askingTitle(asked.kind, tool);
	if (!open || !desk) {
		const settled = settledAsk(asked, desk);
		const later = asked.state === "pending" && desk?.isContinued === true;
		return (
			<p class="asked" data-state={settled.state}>
				<Icon name="shield" /> {open ? "Waiting for an answer" : decidedWords(settled, later)}
			</p>
		);
	}
	return (
		<section class="asking" aria-label={title}>
			<header>
				<Icon name="shield" />
				<strong>{title}</strong>
				<span class="note">
					<code title={`In chats and on the command line it is called ${asked.id}.`}>{asked.id}</code>{" "}
					{leftWords(asked, now)}
				</span>
			</header>
			{asked.kind === "approval" ? (
				<Scrollable as="pre" label="What would run, whole">
					{asked.text}
				</Scrollable>
			) : (
				<p dir="auto">{asked.text}</p>
			)}
			{asked.because === undefined ? null : (
				<p class="asking-because" dir="auto">
					You are asked because {asked.because}.
				</p>
			)}
			{asked.kind === "approval" ? <Decision asked={asked} desk={desk} /> : <Reply asked={asked} desk={desk} />}
		</section>
	);
}

function Decision({ asked, desk }: { asked: Asked; desk: Desk }) {
	const { busy, error, act } = useAnswering();
	const decide = (decision: "approve" | "deny", remember = false) =>
		act(() => desk.decide(asked.id, decision, remember));
	return (
		<>
			<div class="asking-do">
				<button type="button" class="primary" disabled={busy} onClick={() => decide("approve")}>
					Allow
				</button>
				{asked.once ? null : (
					<button type="button" disabled={busy} onClick={() => decide("approve", true)}>
						Allow for this session
					</button>
				)}
				<button type="button" class="danger" disabled={busy} onClick={() => decide("deny")}>
					Deny
				</button>
			</div>
			<Failure error={error} />
		</>
	);
}

function Reply({ asked, desk }: { asked: Asked; desk: Desk }) {
	const { busy, error, act } = useAnswering();
	const [text, setText] = useState("");
	const answer = (given: string) => act(() => desk.answer(asked.id, given));
	if (asked.choices && asked.choices.length > 0)
		return (
			<>
				<div class="asking-do">
					{asked.choices.map((choice) => (
						<button type="button" key={choice} disabled={busy} onClick={() => answer(choice)}>
							{choice}
						</button>
					))}
				</div>
				<Failure error={error} />
			</>
		);
	return (
		<form
			class="asking-do"
			onSubmit={(event) => {
				event.preventDefault();
				if (text.trim() !== "") answer(text.trim());
			}}
		>
			<input
				value={text}
				onInput={(event) => setText(event.currentTarget.value)}
				aria-label="Your answer"
				dir="auto"
				disabled={busy}
			/>
			<button type="submit" class="primary" disabled={busy || text.trim() === ""}>
				Answer
			</button>
			<Failure error={error} />
		</form>
	);
}

const Failure = ({ error }: { error: string | undefined }) =>
	error === undefined ? null : (
		<p class="asking-failed" role="alert">
			Not taken. {error}
		</p>
	);

/** One answer at a time. The decision itself comes back with the frames. */
function useAnswering() {
	const [busy, setBusy] = useState(false);
	const [error, setError] = useState<string>();
	const act = (work: () => Promise<void>) => {
		setBusy(true);
		setError(undefined);
		work().then(backToWriting, (cause: unknown) => {
			setError(toNexusError(cause).message);
			setBusy(false);
		});
	};
	return { busy, error, act };
}

function useSeconds(running: boolean): number {
	const [now, setNow] = useState(Date.now);
	useEffect(() => {
		if (!running) return undefined;
		const timer = setInterval(() => setNow(Date.now()), TICK_MS);
		return () => clearInterval(timer);
	}, [running]);
	return now;
}
