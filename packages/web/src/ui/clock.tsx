/** Times that tick while they are shown. */

import { useEffect, useState } from "preact/hooks";
import { Icon } from "./element.tsx";
import { durationText, leftText } from "./format.ts";

/** The present time, renewed every `everyMs` while `isRunning`. */
export function useNow(everyMs: number, isRunning: boolean): number {
	const [now, setNow] = useState(Date.now);
	useEffect(() => {
		if (!isRunning) return undefined;
		setNow(Date.now());
		const timer = setInterval(() => setNow(Date.now()), everyMs);
		return () => clearInterval(timer);
	}, [isRunning, everyMs]);
	return now;
}

const COUNTDOWN_TICK_MS = 100;

/** The time until `until` on the daemon's clock; draws nothing once it has passed. */
export function Countdown({ until, skewMs, label }: { until: number | undefined; skewMs: number; label: string }) {
	const isRunning = until !== undefined && until - skewMs > Date.now();
	const now = useNow(COUNTDOWN_TICK_MS, isRunning);
	const leftMs = until === undefined ? 0 : until - skewMs - now;
	if (!isRunning || leftMs <= 0) return null;
	return (
		<span class="countdown">
			<Icon name="pause" /> {label} <b>{leftText(leftMs)}</b>
		</span>
	);
}

const ELAPSED_TICK_MS = 200;

interface ElapsedProps {
	from: number;
	to: number | undefined;
	/** The present of a replay. */
	now?: number | undefined;
}

/** How long something took, or has taken so far. */
export function Elapsed({ from, to, now }: ElapsedProps) {
	const present = useNow(ELAPSED_TICK_MS, to === undefined && now === undefined);
	return <span class="elapsed">{durationText(Math.max(0, (to ?? now ?? present) - from))}</span>;
}
