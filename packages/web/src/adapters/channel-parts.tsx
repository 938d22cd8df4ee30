/** Small parts that the lab and the adapters page share: a platform's mark, a state in words, a time that runs down. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { leftText } from "../app/words.ts";
import type { PlatformPause } from "../lab/lab.ts";
import { Icon } from "../ui/icon.tsx";
import { channelMark, type Words } from "./channels.ts";

export const ChannelMark = ({ channel }: { channel: string }) => (
	<span class="channel-mark" data-channel={channel} aria-hidden="true">
		{channelMark(channel)}
	</span>
);

export const Status = ({ words }: { words: Words }) => (
	<span class="status" data-tone={words.tone}>
		{words.text}
	</span>
);

export const Notice = ({ tone, children }: { tone: "quiet" | "bad"; children: ComponentChildren }) => (
	<div class="outcome" data-tone={tone} role={tone === "bad" ? "alert" : "status"}>
		<Icon name={tone === "bad" ? "warn" : "check"} />
		<span>{children}</span>
	</div>
);

const TICK_MS = 100;
const SECOND_MS = 1000;

/** Seconds until a time of the daemon's clock; nothing once it has come. */
export function Countdown({ until, skewMs, label }: { until: number | undefined; skewMs: number; label: string }) {
	const [now, setNow] = useState(Date.now);
	const leftMs = until === undefined ? 0 : until - skewMs - now;
	const running = until !== undefined && until - skewMs > Date.now();
	useEffect(() => {
		if (!running) return undefined;
		setNow(Date.now());
		const timer = setInterval(() => setNow(Date.now()), TICK_MS);
		return () => clearInterval(timer);
	}, [running, until]);
	if (!running || leftMs <= 0) return null;
	return (
		<span class="countdown">
			<Icon name="pause" /> {label} <b>{leftText(leftMs)}</b>
		</span>
	);
}

/** What holds a platform up, and for how long it has. */
export function Waited({ pause, skewMs }: { pause: PlatformPause; skewMs: number }) {
	const [now, setNow] = useState(Date.now);
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now()), SECOND_MS);
		return () => clearInterval(timer);
	}, []);
	const seconds = Math.floor(Math.max(0, now - (pause.since - skewMs)) / SECOND_MS);
	return (
		<span class="countdown" data-kind="waited">
			<Icon name="pause" /> {pause.text} {seconds > 0 && <b>{seconds} s</b>}
		</span>
	);
}
