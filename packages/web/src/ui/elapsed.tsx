/** How long something took, or has been taking so far. */

import { useEffect, useState } from "preact/hooks";
import { durationText } from "../app/words.ts";

const TICK_MS = 200;

export interface ElapsedProps {
	from: number;
	to: number | undefined;
	/** The time it is, when that is not the present (a replay). */
	now?: number | undefined;
}

export function Elapsed({ from, to, now }: ElapsedProps) {
	const [present, setPresent] = useState(Date.now);
	const ticking = to === undefined && now === undefined;
	useEffect(() => {
		if (!ticking) return undefined;
		const timer = setInterval(() => setPresent(Date.now()), TICK_MS);
		return () => clearInterval(timer);
	}, [ticking]);
	return <span class="elapsed">{durationText(Math.max(0, (to ?? now ?? present) - from))}</span>;
}
