/** The client on one stream through every cut, keeping all it got. */

import { createClient, type Source } from "../../packages/client/src/client.ts";
import { TOKEN } from "./daemon.ts";

interface Received {
	id: number;
	data: string;
}

export interface Reader {
	readonly records: readonly Received[];
	/** Records that are not frames, refusals, and whatever the client had to make good. */
	readonly faults: readonly string[];
	/** How often it was connected. */
	readonly connections: number;
	/** The server said that nothing will follow (204), or the run's final end was read. */
	readonly ended: boolean;
	close(): void;
}

export function follow(url: string, source: Source): Reader {
	const records: Received[] = [];
	const faults: string[] = [];
	let connections = 0;
	const client = createClient({ url, token: TOKEN, limits: { retryFirstMs: 20, retryMaxMs: 20 } });
	const stream = client.open(source, {
		onRecords(fresh) {
			for (const { offset, text } of fresh) records.push({ id: offset, data: text });
		},
		onState({ phase, error }) {
			if (phase === "live") connections++;
			if (phase === "refused") faults.push(`${url}: ${error?.message}`);
		},
		onDamage: ({ message }) => void faults.push(message),
	});
	return {
		records,
		get faults() {
			const { faults: made } = stream.state;
			return made === 0 ? faults : [...faults, `${made} records were repeated or left out`];
		},
		get connections() {
			return connections;
		},
		get ended() {
			return stream.state.phase === "ended";
		},
		close: () => stream.send({ type: "stop" }),
	};
}
