/** The pipeline on a real Broker, Bus and Ledger, with an outbound side that only writes down what it is asked for. */

import type { InboundMessage } from "../../../src/adapter/adapter.ts";
import { type Delivery, sqlitePairings } from "../../../src/ledger/ledger.ts";
import { createNex, type InboundConfig, type NexOptions, type PipelineOutbound } from "../../../src/nex/nex.ts";
import { type Play, type RigOptions, rig } from "../../broker/rig.ts";

export type Delivered = Parameters<PipelineOutbound["deliver"]>[0];

export function outboundOf(fields: Partial<PipelineOutbound> = {}) {
	const asked: Delivered[] = [];
	const launched: string[] = [];
	const settled: string[] = [];
	const listeners = new Map<string, (message: InboundMessage) => Promise<void>>();
	const infoOf = (id: string): Delivery =>
		({ id, state: "complete", createdAt: 1, endedAt: 1, messages: [] as Delivery["messages"] }) as Delivery;
	const outbound: PipelineOutbound = {
		deliver: async (request) => infoOf(`dlv_${asked.push(request)}`),
		open: (request) => infoOf(`dlv_${asked.push(request)}`),
		launch: (id) => void launched.push(id),
		deliveries: () => [],
		async settled(id) {
			settled.push(id);
			return infoOf(id);
		},
		info: async (channel) => ({
			...{ channel, version: "1", protocol: 1, supports: ["monitor", "send"], settings: [] },
			...{ limits: { textMax: 4096, unit: "utf16" }, public: channel === "telegram" },
		}),
		monitor: (channel, account, onMessage) => void listeners.set(`${channel}/${account}`, onMessage),
		...fields,
	};
	const texts = () => asked.flatMap((one) => ("text" in one ? [one.text] : []));
	return { outbound, asked, launched, settled, listeners, texts };
}

export interface NexRigOptions extends RigOptions, Pick<NexOptions, "plugins"> {
	config?: InboundConfig;
	outbound?: Partial<PipelineOutbound>;
}

export function nexRig(play: Play, { config, plugins, outbound: fields, ...options }: NexRigOptions = {}) {
	const parts = rig(play, options);
	const out = outboundOf(fields);
	const { broker, ledger, file } = parts;
	const { clock, log } = options;
	const nex = createNex({
		...{ broker, ledger, outbound: out.outbound, pairings: sqlitePairings(file) },
		...(config && { config }),
		...(plugins && { plugins }),
		...(clock && { clock }),
		...(log && { log }),
	});
	return { ...parts, ...out, nex };
}

let count = 0;

/** A message from Ann in a direct chat, unless told otherwise. */
export const messageOf = (text: string, fields: Partial<InboundMessage> = {}): InboundMessage => ({
	...{ eventId: `m${++count}`, from: { id: "ann", name: "Ann" }, chat: { id: "c1", type: "direct" }, text },
	...{ target: { to: "c1" }, ts: 0 },
	...fields,
});
