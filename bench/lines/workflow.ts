/** What a workflow costs beside the work of its nodes: from the submission to its end, durable commits included. */

import { Agent, request } from "node:http";
import type { WorkflowNodeJson } from "../../packages/daemon/src/services/workflows/port.ts";
import { submissionOf } from "../../test/submission.ts";
import type { Figure } from "../figure.ts";
import { textOf } from "../pace.ts";
import { type Server, startNexus, withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

const NODES = 128;
const AI_NODES = 32;
const WARM = 5;
const ROUNDS = 15;
const GOAL_MS = 3;

const at = (n: number) => `n${n}`;

/** Every second node makes a text of what the one before gave. */
const plain = (n: number, before: readonly number[]): WorkflowNodeJson => ({
	id: at(n),
	depends_on: before.map(at),
	...(n % 2 === 0
		? { kind: "CONTROL_NOOP" }
		: { kind: "TRANSFORM_TEMPLATE", config: { template: `node ${n} of {{input.name}}` } }),
});

/** One model call: the engine says one token. */
const asking = (n: number, before: readonly number[]): WorkflowNodeJson => ({
	id: at(n),
	kind: "AI_GENERATE",
	depends_on: before.map(at),
	config: { connector_id: "default", prompt: textOf({ tokens: 1, rate: 0 }) },
});

type Node = typeof plain;

const chain = (count: number, node: Node): WorkflowNodeJson[] =>
	Array.from({ length: count }, (_, n) => node(n, n === 0 ? [] : [n - 1]));

/** One node, all others behind it, and one behind them all. */
export function wide(count: number, node: Node): WorkflowNodeJson[] {
	const middle = Array.from({ length: count - 2 }, (_, n) => n + 1);
	return [node(0, []), ...middle.map((n) => node(n, [0])), node(count - 1, middle)];
}

const SHAPES: Readonly<Record<string, WorkflowNodeJson[]>> = {
	[`chain of ${NODES} nodes`]: chain(NODES, plain),
	[`${NODES - 2} nodes side by side`]: wide(NODES, plain),
	[`chain of ${AI_NODES} model calls`]: chain(AI_NODES, asking),
	[`${AI_NODES - 2} model calls side by side`]: wide(AI_NODES, asking),
};

function ask({ port, token }: Server, agent: Agent, method: string, path: string, body?: object): Promise<string> {
	const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
	return new Promise((resolve, reject) => {
		const sent = request({ agent, port, host: "127.0.0.1", method, path, headers }, (response) => {
			let text = "";
			response.setEncoding("utf8").on("data", (part: string) => {
				text += part;
			});
			response.on("error", reject);
			response.on("end", () => {
				if ((response.statusCode ?? 0) < 300) resolve(text);
				else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
			});
		});
		sent.on("error", reject);
		sent.end(body && JSON.stringify(body));
	});
}

/** Milliseconds from the submission until a subscriber has its end. */
async function run(server: Server, agent: Agent, nodes: readonly WorkflowNodeJson[]): Promise<number> {
	const started = performance.now();
	const definition = { name: "bench", nodes: [...nodes], input: { name: "the bench" } };
	const submitted = JSON.parse(await ask(server, agent, "POST", "/v1/workflows", submissionOf(definition, "bench")));
	const path = `/v1/workflows/${submitted.workflow_id}`;
	await ask(server, agent, "GET", `${path}/stream`);
	const ms = performance.now() - started;
	const { workflow: ended } = JSON.parse(await ask(server, agent, "GET", path));
	if (ended.state !== "WORKFLOW_STATE_COMPLETED") throw new Error(`${path} is ${ended.state}`);
	return ms;
}

export function workflow(): Promise<Figure[]> {
	return withFolder(async (folder) => {
		const server = await startNexus(folder);
		const agent = new Agent({ keepAlive: true });
		try {
			const times = new Map(Object.keys(SHAPES).map((name): [string, number[]] => [name, []]));
			for (let turn = -WARM; turn < ROUNDS; turn++) {
				for (const [name, nodes] of Object.entries(SHAPES)) {
					const perNodeMs = (await run(server, agent, nodes)) / nodes.length;
					if (turn >= 0) times.get(name)?.push(perNodeMs);
				}
			}
			return [...times].map(([name, perNode]) => ({
				name: `workflow, ${name}, per node`,
				unit: "ms",
				value: median(perNode),
				goal: { of: "value", atMost: GOAL_MS },
			}));
		} finally {
			agent.destroy();
			await server.stop();
		}
	});
}
