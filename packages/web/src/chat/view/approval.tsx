/** The card of an approval, with all arguments of the tool call, or of a question from the agent. */

import { toNexusError } from "@nexus-stream/protocol";
import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { useNow } from "../../ui/clock.tsx";
import { Button, Icon, Scrollable } from "../../ui/element.tsx";
import {
	type ApprovalActions,
	approvalTitle,
	decidedWords,
	isOpen,
	type ShownApproval,
	settledApproval,
	timeLeftWords,
} from "../approvals.ts";
import { backToWriting } from "./composer.tsx";

/** Undefined where answers are only shown, as in the inspector. */
export const ApprovalContext = createContext<ApprovalActions | undefined>(undefined);

const TICK_MS = 1000;

export function ApprovalCard({ approval, tool }: { approval: ShownApproval; tool: string }) {
	const actions = useContext(ApprovalContext);
	const now = useNow(TICK_MS, approval.state === "pending");
	const open = isOpen(approval, now) && actions?.isPending(approval.id) !== false;
	const title = approvalTitle(approval.kind, tool);
	if (!open || !actions) {
		const settled = settledApproval(approval, actions);
		const later = approval.state === "pending" && actions?.isContinued === true;
		return (
			<p class="row asked" data-state={settled.state}>
				<Icon name="shield" /> {open ? "Waiting for an answer" : decidedWords(settled, later)}
			</p>
		);
	}
	return (
		<section class="asking" aria-label={title}>
			<header class="row wrap">
				<Icon name="shield" />
				<strong>{title}</strong>
				<span class="note">
					<code title={`In chats and on the command line it is called ${approval.id}.`}>{approval.id}</code>{" "}
					{timeLeftWords(approval, now)}
				</span>
			</header>
			{approval.kind === "approval" ? (
				<Scrollable as="pre" class="sunken" label="What would run, whole">
					{approval.text}
				</Scrollable>
			) : (
				<p dir="auto">{approval.text}</p>
			)}
			{approval.because !== undefined && (
				<p class="asking-because" dir="auto">
					You are asked because {approval.because}.
				</p>
			)}
			<Answering approval={approval} actions={actions} />
		</section>
	);
}

interface AnsweringProps {
	approval: ShownApproval;
	actions: ApprovalActions;
}

const Answering = (props: AnsweringProps) =>
	props.approval.kind === "approval" ? <Decision {...props} /> : <Reply {...props} />;

function Decision({ approval, actions }: AnsweringProps) {
	const { busy, error, act } = useAnswering();
	const decide = (decision: "approve" | "deny", remember = false) =>
		act(() => actions.decide(approval.id, decision, remember));
	return (
		<>
			<div class="asking-do">
				<Button class="primary" disabled={busy} onClick={() => decide("approve")} text="Allow" />
				{!approval.once && (
					<Button disabled={busy} onClick={() => decide("approve", true)} text="Allow for this session" />
				)}
				<Button class="danger" disabled={busy} onClick={() => decide("deny")} text="Deny" />
			</div>
			<Failure error={error} />
		</>
	);
}

function Reply({ approval, actions }: AnsweringProps) {
	const { busy, error, act } = useAnswering();
	const [text, setText] = useState("");
	const answer = (given: string) => act(() => actions.answer(approval.id, given));
	if (approval.choices && approval.choices.length > 0)
		return (
			<>
				<div class="asking-do">
					{approval.choices.map((choice) => (
						<Button key={choice} disabled={busy} onClick={() => answer(choice)} text={choice} />
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
			<Button type="submit" class="primary" disabled={busy || text.trim() === ""} text="Answer" />
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

/** Sends one answer at a time. The frames of the run bring the decision back. */
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
