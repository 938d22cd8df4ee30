/** The inbox on a real Broker, Bus and Ledger, with an outbound side that only writes down what it is asked for. */

import type { Engine, EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import type { InboundMessage } from "../../../packages/adapter/src/port.ts";
import type { BrokerLimits } from "../../../packages/daemon/src/broker/port.ts";
import { type Delivery, deliveryWrites } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import type { QueueSettings } from "../../../packages/daemon/src/ledger/inbox/port.ts";
import type { NexOptions, NexOutbound } from "../../../packages/daemon/src/nex/create.ts";
import type { InboundChannelConfig } from "../../../packages/daemon/src/nex/inbox/config.ts";
import {
	type Accepted,
	type ClientMessage,
	createNex,
	type InboundConfig,
	type InboxLimits,
} from "../../../packages/daemon/src/nex/nex.ts";
import { gate, type Play, type RigOptions, rig, text, until, yieldsThenWaits } from "../../broker/rig.ts";

export type Delivered = Parameters<NexOutbound["deliver"]>[0];

/** Deliveries of one file have ids of their own. */
export function outboundOf(fields: Partial<NexOutbound> = {}, prefix = "dlv") {
	const asked: Delivered[] = [];
	const launched: string[] = [];
	const settled: string[] = [];
	const listeners = new Map<string, (message: InboundMessage, id: string) => Promise<void>>();
	/** The questions sent to chats, and the outcomes shown there. */
	const questions: Parameters<NexOutbound["ask"]>[0][] = [];
	const outcomes: [id: string, text: string][] = [];
	const infoOf = (id: string): Delivery =>
		({ id, state: "complete", createdAt: 1, endedAt: 1, messages: [] as Delivery["messages"] }) as Delivery;
	const outbound: NexOutbound = {
		deliver: async (request) => infoOf(`${prefix}_${asked.push(request)}`),
		planDelivery(request) {
			const { runId, target, options = {} } = request;
			const { channel, id: account } = request.account;
			const id = `${prefix}_${asked.push(request)}`;
			const delivery = { id, runId, channel, account, target, options: { ...options }, createdAt: 1 };
			return { delivery, write: deliveryWrites.open(delivery) };
		},
		launch: ({ id }) => void launched.push(id),
		async ask(question) {
			questions.push(question);
			return infoOf(`${prefix}_ask_${question.id}`);
		},
		settleQuestion: async (id, text) => void outcomes.push([id, text]),
		deliveries: async () => [],
		async settled(id) {
			settled.push(id);
			return infoOf(id);
		},
		info: async (channel) => ({
			channel,
			version: "1",
			protocol: 1,
			supports: ["monitor", "send"],
			settings: [],
			limits: { textMax: 4096, unit: "utf16" },
			public: channel === "telegram",
		}),
		monitor: (channel, account, { onMessage }) => void listeners.set(`${channel}/${account}`, onMessage),
		...fields,
	};
	const texts = () => asked.flatMap((one) => ("text" in one ? [one.text] : []));
	return { outbound, asked, launched, settled, listeners, texts, questions, outcomes };
}

export interface NexRigOptions extends Omit<RigOptions, "limits">, Pick<NexOptions, "plugins" | "arrived"> {
	config?: InboundConfig;
	limits?: Partial<BrokerLimits & InboxLimits>;
	outbound?: Partial<NexOutbound>;
	engine?: Pick<Engine, "disableStreaming" | "injects">;
}

/** How often a file was opened. */
const rigsOf = new Map<string | undefined, number>();

export function nexRig(play: Play, options: NexRigOptions = {}) {
	const { config = {}, plugins, arrived, outbound: fields, engine, ...broker } = options;
	const parts = rig(play, broker);
	const opened = (rigsOf.get(options.path) ?? 0) + 1;
	if (options.path !== undefined) rigsOf.set(options.path, opened);
	const out = outboundOf(fields, opened === 1 ? "dlv" : `dlv${opened}`);
	const { clock, log, limits } = options;
	const nex = createNex({
		broker: parts.broker,
		bus: parts.bus,
		ledger: parts.ledger,
		outbound: out.outbound,
		config,
		engine,
		limits,
		plugins,
		arrived,
		clock,
		log,
	});
	/** A client's message, with how it is to wait. */
	const submit = (message: ClientMessage & { queue?: QueueSettings }): Promise<Accepted> => {
		const { queue, ...rest } = message;
		const sessions = queue ? { [message.session]: { queue } } : {};
		nex.reconfigure({ ...config, sessions: { ...config.sessions, ...sessions } }, []);
		return nex.receive(rest);
	};
	/** Its turn is on record, and this process knows it. */
	const runSettled = (runId: string) =>
		until(() => parts.look.turn(runId) !== undefined && !parts.broker.live(runId), `${runId} settles`);
	/** A message to the bot on Telegram. */
	const hear = (said: string, fields?: Partial<InboundMessage>): Promise<Accepted> =>
		nex.receive({ channel: "telegram", account: "bot", message: messageOf(said, fields) });
	return { ...parts, ...out, nex, submit, hear, runSettled };
}

/** A bot on Telegram that everybody may write to, unless the fields say otherwise. */
export const telegram = (fields: InboundChannelConfig = {}): InboundConfig => ({
	channels: { telegram: { acl: { unknown: "allow" }, accounts: { bot: {} }, ...fields } },
});

/** Settings of a chat that waits 100 ms for more messages. */
export const COLLECTING = { mode: "collect", collectMs: 100 } as const;

let count = 0;

/** A message from Ann in a direct chat, unless the fields say otherwise. */
export const messageOf = (text: string, fields: Partial<InboundMessage> = {}): InboundMessage => ({
	eventId: `m${++count}`,
	from: { id: "ann", name: "Ann" },
	chat: { id: "c1", type: "direct" },
	text,
	target: { to: "c1" },
	ts: 0,
	...fields,
});

/** An engine that repeats the last message. */
export const echo: Play = async function* ({ messages }) {
	yield text(`re ${messages.at(-1)?.text}`);
};

/** An engine that says one word and never ends. */
export const stuck: Play = yieldsThenWaits(text("thinking"));

/** An engine that never says anything: the process that it runs in writes nothing next to its successor. */
export const silent: Play = yieldsThenWaits();

/** An engine that answers at once, and keeps what it was asked. */
export function answering(answer = "ok") {
	const asked: EngineRequest[] = [];
	const play: Play = async function* (request) {
		asked.push(request);
		yield text(answer);
	};
	return { asked, play };
}

/** The last messages of requests. */
export const lastOf = (asked: readonly EngineRequest[]) => asked.map(({ messages }) => messages.at(-1)!.text);

/** An engine that says "half" after these events, and waits to be stopped or let go; then it says "whole", if it is to. */
export function patient({ first = [], last = false }: { first?: readonly EngineEvent[]; last?: boolean } = {}) {
	const asked: EngineRequest[] = [];
	const doors: ReturnType<typeof gate>[] = [];
	const play: Play = async function* (request, signal) {
		const door = gate();
		asked.push(request);
		doors.push(door);
		yield* first;
		yield text("half ");
		const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
		await Promise.race([door.opened, stopped]);
		if (last && !signal.aborted) yield text("whole");
	};
	return { play, asked, doors };
}

/** Queue settings with small limits; the newest message is refused at the cap. */
export const queueOf = (mode: QueueSettings["mode"], fields: Partial<QueueSettings> = {}): QueueSettings => ({
	mode,
	collectMs: 100,
	messagesMax: 10,
	atCap: "drop_newest",
	...fields,
});

/** Copies a store's file after each commit: how a process that dies there leaves it. */
export function copiesAtCommits({ file }: ReturnType<typeof nexRig>, path: string): string[] {
	const { db, transaction } = file;
	const copies: string[] = [];
	file.transaction = (work) => {
		const isOutermost = !db.isTransaction;
		const result = transaction.call(file, work) as ReturnType<typeof work>;
		if (isOutermost) {
			copies.push(`${path}.${copies.length}`);
			db.exec(`VACUUM INTO '${copies.at(-1)!}'`);
		}
		return result;
	};
	return copies;
}

/** The texts of the people in a request. */
export const usersOf = (request: EngineRequest): string[] =>
	request.messages.filter(({ role }) => role === "user").map((message) => message.text);
