/** The answer of a run: live, finished or replayed, always drawn from the same fold. */

import type { RunView } from "@nexus-stream/protocol";
import { Icon, memo } from "../../ui/element.tsx";
import { type SpeakerLane, stretchesOf, toneOf } from "../arrange.ts";
import { type OutcomeLabel, outcomeOf } from "../words.ts";
import { Message } from "./message.tsx";

export const Answer = memo(({ view, now }: { view: RunView; now?: number | undefined }) => {
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
			<OutcomeNote outcome={outcomeOf(view, undefined)} />
		</div>
	);
});

/** The name of an agent stands above its messages, unless all of them are empty. */
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

/** The name of the agent that says what follows, in a run of several agents. */
export const Speaker = ({ agent }: { agent: string }) => (
	<div class="row speaker" style={{ "--tone": `var(--lane-${toneOf(agent)})` }}>
		<i aria-hidden="true" />
		<span>{agent}</span>
	</div>
);

export const Dots = () => (
	<div class="dots" role="img" aria-label="Waiting for the first words">
		<i />
		<i />
		<i />
	</div>
);

/** How a run ended, unless it is simply done. */
export function OutcomeNote({ outcome }: { outcome: OutcomeLabel | undefined }) {
	if (!outcome || outcome.tone === "good") return null;
	return (
		<p class="outcome" data-tone={outcome.tone}>
			<Icon name={outcome.tone === "bad" ? "warn" : "stop"} />
			<span>
				<strong>{outcome.title}.</strong> {outcome.detail}
			</span>
		</p>
	);
}

/**
 * Whether the answer arrived complete: this page verified the count and checksum of every stream. Damage is always shown; the good mark
 * only for a run that is done, so that it is not read as a judgement on an answer that failed.
 */
export function Verified({ view }: { view: RunView }) {
	if (!view.final) return null;
	const first = view.violations[0];
	if (first)
		return (
			<span class="mark verified" data-ok="false" title={first.message}>
				<Icon name="cross" /> {first.rule} {first.kind.replaceAll("_", " ")}
			</span>
		);
	if (view.state !== "completed") return null;
	return (
		<span
			class="mark verified"
			data-ok="true"
			title="Everything arrived: this page checked the count and checksum of each stream."
		>
			<Icon name="check" /> verified
		</span>
	);
}
