/** Follows the end of growing content: scrolling up stops it at once, scrolling back to the end resumes it. */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Stick {
	readonly stuck: boolean;
	/** The scroll position of the last measurement. */
	readonly top: number;
}

export type ScrollBox = Pick<HTMLElement, "scrollTop" | "scrollHeight" | "clientHeight">;

export const STUCK: Stick = { stuck: true, top: 0 };

/** The state after a scroll. A distance below `nearPx` counts as the end, except on the way up. */
export function stepStick({ stuck, top }: Stick, box: ScrollBox, nearPx: number): Stick {
	const gap = box.scrollHeight - box.scrollTop - box.clientHeight;
	const now = { top: box.scrollTop };
	// Content that became shorter also moves the box up, but leaves it at the end.
	if (gap < 1) return { ...now, stuck: true };
	if (box.scrollTop < top) return { ...now, stuck: false };
	// Further from the end without an upward scroll: the content grew.
	return { ...now, stuck: stuck || gap < nearPx };
}

/** Scrolls to the end while it is followed. */
export function followEnd(stick: Stick, box: ScrollBox): Stick {
	if (!stick.stuck) return stick;
	box.scrollTop = box.scrollHeight;
	return { stuck: true, top: box.scrollTop };
}

const AT_END_PX = 24;

/** For a box that follows its end whenever one of `changes` changes, while `isFollowed`. */
export function useEndFollower<Box extends HTMLElement>(
	changes: readonly unknown[],
	isFollowed = true,
): { box: RefObject<Box | null>; onScroll(): void } {
	const box = useRef<Box>(null);
	const stick = useRef(STUCK);
	useLayoutEffect(() => {
		if (box.current && isFollowed) stick.current = followEnd(stick.current, box.current);
	}, [...changes, isFollowed]);
	const onScroll = () => {
		if (box.current) stick.current = stepStick(stick.current, box.current, AT_END_PX);
	};
	return { box, onScroll };
}
