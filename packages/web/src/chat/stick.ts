/** Whether a reader follows the end of what grows, as a value: going up lets go at once, coming back takes hold again. */

export interface Stick {
	readonly stuck: boolean;
	/** Where the box stood when it was last looked at. */
	readonly top: number;
}

export type ScrollBox = Pick<HTMLElement, "scrollTop" | "scrollHeight" | "clientHeight">;

export const STUCK: Stick = { stuck: true, top: 0 };

/** After a scroll. Closer to the end than `nearPx` counts as being there, except on the way up. */
export function stepStick({ stuck, top }: Stick, box: ScrollBox, nearPx: number): Stick {
	const gap = box.scrollHeight - box.scrollTop - box.clientHeight;
	const now = { top: box.scrollTop };
	// What became shorter moves the box up, too, but leaves it at the end.
	if (gap < 1) return { ...now, stuck: true };
	if (box.scrollTop < top) return { ...now, stuck: false };
	// Further away without having gone up: it grew since.
	return { ...now, stuck: stuck || gap < nearPx };
}

/** Goes to the end when that is followed. */
export function followEnd(stick: Stick, box: ScrollBox): Stick {
	if (!stick.stuck) return stick;
	box.scrollTop = box.scrollHeight;
	return { stuck: true, top: box.scrollTop };
}
