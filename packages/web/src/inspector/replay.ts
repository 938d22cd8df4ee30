/** The player of a replay as a value: its position, its speed, and the effect of each button. */

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
	playing: false,
	speed: 1,
	atMs: durationMs,
	asOf: 0,
	durationMs,
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
