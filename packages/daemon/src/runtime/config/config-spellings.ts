/** Other spellings of keys that people know from similar software → ours. The one place that knows them; positions in the file stay as they are. */

import { type Document, isMap, isScalar, Pair, Scalar, YAMLMap } from "yaml";

/** `adapters` is `channels`; `streaming.typing_interval_ms` is `typing.intervalMs`. A file with both spellings keeps both: the schema then names the wrong one. */
export function respell(document: Document): void {
	const root = document.contents;
	if (!isMap(root)) return;
	rename(root, "adapters", "channels");
	const channels = root.get("channels");
	if (!isMap(channels)) return;
	for (const { value: channel } of channels.items) if (isMap(channel)) moveTypingInterval(channel);
}

function moveTypingInterval(channel: YAMLMap): void {
	const streaming = channel.get("streaming");
	if (!isMap(streaming)) return;
	const interval = pairOf(streaming, "typing_interval_ms");
	const typing = channel.get("typing") ?? new YAMLMap();
	if (!interval || !isMap(typing) || typing.has("intervalMs")) return;
	streaming.items.splice(streaming.items.indexOf(interval), 1);
	typing.items.push(new Pair(renamed(interval.key as Scalar, "intervalMs"), interval.value));
	if (!channel.has("typing")) channel.items.push(new Pair(renamed(interval.key as Scalar, "typing"), typing));
}

function rename(map: YAMLMap, from: string, to: string): void {
	const pair = map.has(to) ? undefined : pairOf(map, from);
	if (pair) pair.key = renamed(pair.key as Scalar, to);
}

const pairOf = (map: YAMLMap, name: string): Pair | undefined =>
	map.items.find(({ key }) => isScalar(key) && key.value === name);

/** It stands where the other stood, for messages about it. */
function renamed({ range }: Scalar, name: string): Scalar {
	const key = new Scalar(name);
	if (range) key.range = range;
	return key;
}
