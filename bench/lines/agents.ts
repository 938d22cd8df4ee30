/** The cost of the engines: CPU per token of reason-act and of pi on the same scripted model, and how soon a tool acts once a model has asked for it. */

import { join } from "node:path";
import {
	type AssistantMessage,
	type AssistantMessageEvent,
	type Context,
	createAssistantMessageEventStream,
	type Model,
} from "@earendil-works/pi-ai";
import type { Engine } from "@nexus-stream/protocol/engine";
import { createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { type LoadedModel, PI_LIMITS, piEngine } from "../../packages/daemon/src/engine/pi/pi.ts";
import { piModel } from "../../packages/daemon/src/engine/reason-act/model/model.ts";
import { reasonActEngine } from "../../packages/daemon/src/engine/reason-act/reason-act.ts";
import { textResult } from "../../packages/daemon/src/engine/tool.ts";
import { sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { setupOf } from "../../test/engine/reason-act/kit.ts";
import { quiet } from "../../test/quiet.ts";
import type { Figure } from "../figure.ts";
import { withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

const TOKENS = 20_000;
/** The usual size of one read from a network. */
const BURST = 4;
const ROUNDS = 9;
const WARM = 3;
const RUNS = 20;
/** Steps of one run: its checkpoint grows with them. */
const TOOL_CALLS = 20;
const FAILURE = { provider: "scripted", model: "scripted", keySource: "", apiKey: "", section: "bench" };

const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

const messageOf = (content: AssistantMessage["content"]): AssistantMessage => ({
	role: "assistant",
	api: "scripted",
	provider: "scripted",
	model: "scripted",
	timestamp: 0,
	content,
	usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: NO_COST },
	stopReason: content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop",
});

/** The same object for both engines: what it costs falls on both. */
function scripted(answer: (context: Context) => AsyncGenerator<readonly AssistantMessageEvent[]>): LoadedModel {
	const model = {
		id: "scripted",
		name: "scripted",
		api: "scripted",
		provider: "scripted",
		baseUrl: "",
		reasoning: false,
		input: ["text"],
		cost: NO_COST,
		contextWindow: 1_000_000,
		maxTokens: 1_000_000,
	} as unknown as Model<"scripted">;
	const streamSimple = (_model: unknown, context: Context) => {
		const stream = createAssistantMessageEventStream();
		void (async () => {
			for await (const events of answer(context)) for (const event of events) stream.push(event);
		})();
		return stream;
	};
	return { model, provider: undefined, models: { streamSimple } } as unknown as LoadedModel;
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function* flood(): AsyncGenerator<readonly AssistantMessageEvent[]> {
	const text = "sixteen letters ".repeat(TOKENS);
	const partial = messageOf([{ type: "text", text: "" }]);
	const delta = { type: "text_delta", contentIndex: 0, delta: "sixteen letters ", partial } as const;
	yield [
		{ type: "start", partial },
		{ type: "text_start", contentIndex: 0, partial },
	];
	for (let made = 0; made < TOKENS; made += BURST) {
		yield Array.from({ length: BURST }, () => delta);
		await turn();
	}
	const message = messageOf([{ type: "text", text }]);
	yield [
		{ type: "text_end", contentIndex: 0, content: text, partial: message },
		{ type: "done", reason: "stop", message },
	];
}

const request = {
	session: "bench",
	runId: "run_bench",
	messages: [{ role: "user" as const, text: "go" }],
	attachments: [],
	toolTimeoutMs: 60_000,
};

/** Microseconds of CPU per token, garbage collection and the model's own part included. */
async function cpuPerToken(engine: Engine): Promise<number> {
	const before = process.cpuUsage();
	let chars = 0;
	for await (const said of engine.run(request, { signal: new AbortController().signal }))
		for (const event of [said].flat()) if (event.type === "text") chars += event.delta.length;
	const { user, system } = process.cpuUsage(before);
	if (chars !== TOKENS * 16) throw new Error(`${engine.name} said ${chars} characters`);
	return (user + system) / TOKENS;
}

async function tokens(): Promise<Figure> {
	const loaded = scripted(flood);
	const pi = await piEngine({ loaded, failure: FAILURE, tools: [], config: {}, limits: PI_LIMITS });
	const options = { thinking: "off" as const, failure: FAILURE, retriesMax: 0, retryDelayMsMax: 1 };
	const reasonAct = reasonActEngine(await setupOf({}, await piModel(loaded, options), []));
	const costs = { pi: [] as number[], reasonAct: [] as number[] };
	for (let round = -WARM; round < ROUNDS; round++) {
		const cost = { pi: await cpuPerToken(pi), reasonAct: await cpuPerToken(reasonAct) };
		if (round < 0) continue;
		costs.pi.push(cost.pi);
		costs.reasonAct.push(cost.reasonAct);
	}
	return {
		name: "reason-act, CPU per token",
		unit: "µs",
		value: median(costs.reasonAct),
		bare: median(costs.pi),
		against: "pi",
		goal: { of: "ratio", atMost: 1.15 },
	};
}

/** From the message that asks for a tool to the tool's first line, through the Broker and a store. */
async function toolStart(): Promise<Figure> {
	return withFolder(async (folder) => {
		const file = openSqlite(join(folder, "nexus.db"), "process");
		const ledger = sqliteLedger(file);
		const bus = createBus({ ...quiet, storage: sqliteStorage(file) });
		const waits: number[] = [];
		let askedAt = 0;
		let calls = 0;
		const loaded = scripted(async function* () {
			calls += 1;
			const asks = calls % (TOOL_CALLS + 1) !== 0;
			await turn();
			const message = messageOf(
				asks
					? [{ type: "toolCall", id: `call_${calls}`, name: "look", arguments: {} }]
					: [{ type: "text", text: "ok" }],
			);
			askedAt = performance.now();
			yield [{ type: "done", reason: asks ? "toolUse" : "stop", message }];
		});
		const look = {
			name: "look",
			description: "looks",
			parameters: { type: "object", properties: {} },
			async execute() {
				waits.push(performance.now() - askedAt);
				return textResult("seen");
			},
		};
		const options = { thinking: "off" as const, failure: FAILURE, retriesMax: 0, retryDelayMsMax: 1 };
		const limits = { modelCallsMax: TOOL_CALLS + 1, toolCallsMax: TOOL_CALLS };
		const engine = reasonActEngine(await setupOf(limits, await piModel(loaded, options), [look]));
		const broker = createBroker({ ...quiet, bus, ledger, engine });
		try {
			for (let n = 1; n <= RUNS; n++) {
				const events = [{ eventId: `evt_${n}`, text: "go", attachments: [] }];
				await broker.execute({ session: `bench${n}`, runId: `run_${n}`, events }).result;
			}
		} finally {
			await bus.close();
			if (file.db.isOpen) file.close();
		}
		if (waits.length !== RUNS * TOOL_CALLS) throw new Error(`${waits.length} of ${RUNS * TOOL_CALLS} tools ran`);
		// The first ones warm up.
		const value = median(waits.slice(waits.length / 4));
		return { name: "tool call to tool start, p50", unit: "ms", value, goal: { of: "value", atMost: 1 } };
	});
}

export const agents = async (): Promise<Figure[]> => [await tokens(), await toolStart()];
