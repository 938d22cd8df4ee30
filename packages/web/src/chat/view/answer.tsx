/** What a run has produced: live, finished or replayed, always drawn from the same fold. */

import type { RunView } from "@nexus-stream/protocol";
import { outcomeOf } from "../../app/words.ts";
import { Icon } from "../../ui/icon.tsx";
import { memo } from "../../ui/memo.ts";
import { type SpeakerLane, stretchesOf } from "../lanes.ts";
import { Message } from "./message.tsx";
import { Speaker } from "./speaker.tsx";

export const Answer = memo(({ view, now }: { view: RunView; now?: number | undefined }) => {
	const outcome = outcomeOf(view, undefined);
	const silent = view.messages.every((message) => message.text === "" && message.parts.length === 0);
	const busy = view.messages.some(
		(message) =>
			message.reasoning.some(({ state }) => state === "streaming") ||
			message.tools.some(({ endedAt }) => endedAt === undefined),
	);
	return (
		<div class="answer" aria-busy={!view.final}>
			{stretchesOf(view.messages).map(({ key, lanes }) =>
				lanes.length === 1 ? (
					<LaneMessages key={key} lane={lanes[0]!} now={now} />
				) : (
					<div key={key} class="side-by-side">
						{lanes.map((lane) => (
							<div key={lane.agent ?? ""} class="lane">
								<LaneMessages lane={lane} now={now} />
							</div>
						))}
					</div>
				),
			)}
			{view.compacting && <p class="note">Shortening the context…</p>}
			{!view.final && silent && !busy && <Dots />}
			{outcome && outcome.tone !== "good" && (
				<OutcomeNote tone={outcome.tone} title={outcome.title} detail={outcome.detail} />
			)}
		</div>
	);
});

/** An agent that has shown nothing is not introduced. */
function LaneMessages({ lane: { agent, messages }, now }: { lane: SpeakerLane; now: number | undefined }) {
	const isEmpty = messages.every(
		({ text, parts, tools, reasoning }) => text === "" && parts.length + tools.length + reasoning.length === 0,
	);
	return (
		<>
			{agent !== undefined && !isEmpty && <Speaker agent={agent} />}
			{messages.map((message) => (
				<Message key={message.messageId} message={message} now={now} />
			))}
		</>
	);
}

export const Dots = () => (
	<div class="dots" role="img" aria-label="Waiting for the first words">
		<i />
		<i />
		<i />
	</div>
);

export function OutcomeNote(props: { tone: "good" | "quiet" | "bad"; title: string; detail?: string | undefined }) {
	return (
		<p class="outcome" data-tone={props.tone}>
			<Icon name={props.tone === "bad" ? "warn" : "stop"} />
			<span>
				<strong>{props.title}.</strong> {props.detail}
			</span>
		</p>
	);
}

/**
 * Whether what arrived is what was sent: every stream's count and checksum, as this page computed them itself. Damage is
 * always shown; the good mark only beside Done, where nobody can take it for a judgement on an answer that failed.
 */
export function Verified({ view }: { view: RunView }) {
	if (!view.final) return null;
	const first = view.violations[0];
	if (first) {
		return (
			<span class="verified" data-ok="false" title={first.message}>
				<Icon name="cross" /> {first.rule} {first.kind.replaceAll("_", " ")}
			</span>
		);
	}
	if (view.state !== "completed") return null;
	return (
		<span
			class="verified"
			data-ok="true"
			title="Everything arrived: this page checked the count and checksum of each stream."
		>
			<Icon name="check" /> verified
		</span>
	);
}
