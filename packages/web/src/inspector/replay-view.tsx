/** The replay: a run's frames folded again at their original pace, drawn by the same view as the live answer. */

import type { FrameRecord } from "@nexus-stream/client";
import { createFold, type Fold, type RunView } from "@nexus-stream/protocol";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Answer } from "../chat/view/answer.tsx";
import { durationText } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { useEndFollower } from "../ui/stick.ts";
import { newPlayer, type Player, type PlayerInput, SPEEDS, stepPlayer } from "./replay.ts";

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
			<button
				type="button"
				class="round primary"
				onClick={() => send({ type: player.playing ? "pause" : "play" })}
				aria-label={player.playing ? "Pause the replay" : "Play the replay"}
			>
				<Icon name={player.playing ? "pause" : "play"} />
			</button>
			<button
				type="button"
				class="round"
				onClick={() => send({ type: "seek", atMs: 0 })}
				aria-label="Back to the beginning"
			>
				<Icon name="rewind" />
			</button>
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
