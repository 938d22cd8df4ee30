/** Messages outside of the turns: on their way, queued, failed, or never answered. */

import type { EventJson } from "@nexus-stream/protocol/api";
import { dispositionWords } from "../../adapters/channels.tsx";
import { Button } from "../../ui/element.tsx";
import type { OutgoingMessage } from "../chat.ts";
import { type Writer, writerOf } from "../writer.ts";
import { Dots } from "./answer.tsx";

/** A message of a person. The author is also named for screen readers, which do not show the side of the bubble. */
export const Bubble = ({ text, writer }: { text: string; writer: Writer | undefined }) => (
	<>
		{writer ? (
			<span class="writer" dir="auto">
				{writer.name} <small>{writer.origin}</small>
				<span class="sr">:</span>
			</span>
		) : (
			<span class="sr">You:</span>
		)}
		<div class="bubble" dir="auto">
			{text}
		</div>
	</>
);

/** A message that no run answers, and why. */
export const UnansweredMessage = ({ event }: { event: EventJson }) => (
	<article class="turn" aria-label="Message without an answer">
		<div class="question" data-state={event.disposition} data-by={writerOf(event) ? "other" : "you"}>
			<Bubble text={event.text} writer={writerOf(event)} />
			<span class="fine row wrap delivery">{dispositionWords(event).text}</span>
		</div>
	</article>
);

export interface WaitingProps {
	message: OutgoingMessage;
	onRetry(key: string, text: string): void;
	onDiscard(key: string): void;
	onCancel(eventId: string): void;
}

/** A message that is not part of a turn yet. */
export function Waiting({ message, onRetry, onDiscard, onCancel }: WaitingProps) {
	const { eventId } = message;
	return (
		<article class="turn" aria-label="Message on its way">
			<div class="question" data-state={message.state} data-by={message.writer ? "other" : "you"}>
				<Bubble text={message.text} writer={message.writer} />
				{message.state === "queued" && (
					<span class="fine row wrap delivery">
						Waiting for its turn
						{eventId !== undefined && <Button class="quiet" onClick={() => onCancel(eventId)} text="Cancel" />}
					</span>
				)}
				{message.state === "failed" && (
					<span class="fine row wrap delivery" role="alert">
						Not sent. {message.error}
						<Button class="quiet" onClick={() => onRetry(message.key, message.text)} text="Try again" />
						<Button class="quiet" onClick={() => onDiscard(message.key)} text="Discard" />
					</span>
				)}
			</div>
			{(message.state === "sending" || message.state === "started") && <Dots />}
		</article>
	);
}
