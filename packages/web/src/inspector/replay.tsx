/** The replay: a run's frames folded again at their original pace, drawn by the same view as the live answer. */

import type { FrameRecord } from "@nexus-stream/client";
import { createFold, type Fold, type RunView } from "@nexus-stream/protocol";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Answer } from "../chat/view/answer.tsx";
import { RoundButton } from "../ui/element.tsx";
import { durationText } from "../ui/format.ts";
import { useEndFollower } from "../ui/stick.ts";

export const SPEEDS = [0.5, 1, 2, 4, 8, 16] as const;

export interface Player {
	readonly playing: boolean;
	readonly speed: number;
	/** The position in the run, in milliseconds from its first frame. */
	readonly atMs: number;
	/** The time at which `atMs` was computed. */
	readonly asOf: number;
	readonly durationMs: number;
}

export type PlayerInput =
	| { type: "play" }
	| { type: "pause" }
	| { type: "seek"; atMs: number }
	| { type: "speed"; speed: number }
	| { type: "duration"; durationMs: number }
	| { type: "frame" };

/** A new player stands at the end, so the whole answer is shown until a person presses play. */
export const newPlayer = (durationMs: number): Player => ({
	...{ playing: false, speed: 1, asOf: 0 },
	...{ atMs: durationMs, durationMs },
});

export function stepPlayer(player: Player, input: PlayerInput, now: number): Player {
	const current = advance(player, now);
	switch (input.type) {
		case "play":
			return { ...current, playing: true, atMs: current.atMs >= current.durationMs ? 0 : current.atMs };
		case "pause":
			return { ...current, playing: false };
		case "seek":
			return { ...current, atMs: Math.min(Math.max(0, input.atMs), current.durationMs) };
		case "speed":
			return { ...current, speed: input.speed };
		case "duration": {
			const atEnd = !current.playing && current.atMs >= current.durationMs;
			return { ...current, durationMs: input.durationMs, atMs: atEnd ? input.durationMs : current.atMs };
		}
		case "frame":
			return current;
		default:
			return input satisfies never;
	}
}

function advance(player: Player, now: number): Player {
	if (!player.playing) return { ...player, asOf: now };
	const atMs = Math.min(player.durationMs, player.atMs + (now - player.asOf) * player.speed);
	return { ...player, atMs, asOf: now, playing: atMs < player.durationMs };
}

export interface Replay {
	readonly player: Player;
	send(input: PlayerInput): void;
}

export function useReplay(durationMs: number): Replay {
	const [player, setPlayer] = useState(() => newPlayer(durationMs));
	const send = (input: PlayerInput) => setPlayer((current) => stepPlayer(current, input, performance.now()));
	useEffect(() => send({ type: "duration", durationMs }), [durationMs]);
	useEffect(() => {
		if (!player.playing) return undefined;
		const frame = requestAnimationFrame(() => send({ type: "frame" }));
		return () => cancelAnimationFrame(frame);
	}, [player]);
	return { player, send };
}

/** The view after the first `count` records. Going forward adds to the fold; going back starts a new one. */
export function useViewAt(records: readonly FrameRecord[], count: number): RunView {
	const state = useRef<{ fold: Fold; count: number } | undefined>(undefined);
	return useMemo(() => {
		if (!state.current || state.current.count > count) state.current = { fold: createFold(), count: 0 };
		const { fold } = state.current;
		for (let index = state.current.count; index < count; index += 1) fold.push(records[index]!.frame);
		state.current.count = count;
		return fold.view();
	}, [records, count]);
}

/** The step of an arrow key; the default of a range input would be one millisecond. */
const ARROW_SHARE = 0.02;
const ARROWS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };

export function PlayerBar({ player, send }: Replay) {
	return (
		<section class="row player" aria-label="Replay">
			<RoundButton
				class="primary"
				label={player.playing ? "Pause the replay" : "Play the replay"}
				icon={player.playing ? "pause" : "play"}
				onClick={() => send({ type: player.playing ? "pause" : "play" })}
			/>
			<RoundButton label="Back to the beginning" icon="rewind" onClick={() => send({ type: "seek", atMs: 0 })} />
			<input
				type="range"
				min={0}
				max={Math.max(1, Math.round(player.durationMs))}
				step={1}
				value={Math.round(player.atMs)}
				onInput={(event) => send({ type: "seek", atMs: event.currentTarget.valueAsNumber })}
				onKeyDown={(event) => {
					const direction = ARROWS[event.key];
					if (direction === undefined) return;
					event.preventDefault();
					send({ type: "seek", atMs: player.atMs + direction * player.durationMs * ARROW_SHARE });
				}}
				aria-label="Position"
				aria-valuetext={`${durationText(player.atMs)} of ${durationText(player.durationMs)}`}
			/>
			<output class="player-time">
				{durationText(player.atMs)} / {durationText(player.durationMs)}
			</output>
			<label class="player-speed">
				<span class="sr">Speed</span>
				<select
					value={player.speed}
					onChange={(event) => send({ type: "speed", speed: Number(event.currentTarget.value) })}
				>
					{SPEEDS.map((speed) => (
						<option key={speed} value={speed}>
							{speed}×
						</option>
					))}
				</select>
			</label>
		</section>
	);
}

/** The answer at the position of the player. A whole answer is read from its start; before that the newest words are in view. */
export function Replayed({ view, player, origin }: { view: RunView; player: Player; origin: number }) {
	const isWhole = player.atMs >= player.durationMs;
	const { box, onScroll } = useEndFollower<HTMLElement>([player], !isWhole);
	return (
		<section class="replayed" ref={box} onScroll={onScroll} aria-label="The answer at this moment">
			<Answer view={view} now={origin + player.atMs} />
		</section>
	);
}
