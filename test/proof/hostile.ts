/** A group with an owner, a guest and strangers before a real inbox, Broker, store and loop; the model obeys the last speaker. */

import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { type Tool, textResult } from "../../packages/daemon/src/engine/tool.ts";
import type { AclConfig } from "../../packages/daemon/src/nex/access/acl.ts";
import type { InboundConfig } from "../../packages/daemon/src/nex/nex.ts";
import { until } from "../broker/rig.ts";
import { type Answers, engineOf, type Options, toolOf } from "../engine/reason-act/kit.ts";
import { type NexRigOptions, nexRig, telegram } from "../nex/inbox/rig.ts";

/** The whole group is allowed; only the boss owns it, and max approves in one other group. */
export const ACL: AclConfig = {
	owner: ["boss"],
	allow: [{ chat: "ops-room", sender: "max", approve: ["*"] }],
	unknown: "allow",
	groups: "always",
};

export const OPERATOR = { channel: "telegram", account: "bot", to: "boss-chat" };

export const configOf = (fields: Partial<InboundConfig> = {}): InboundConfig => ({
	...telegram({ acl: ACL }),
	approvals: { to: OPERATOR },
	...fields,
});

/** A tool that says what it was run with. */
export function victim(name: string, ran: string[], fields: Partial<Tool> = {}): Tool {
	return toolOf(name, {
		parameters: { type: "object", properties: { command: { type: "string" } } },
		async execute(args) {
			ran.push(`${name} ${JSON.stringify(args)}`);
			return textResult(`${name} done`);
		},
		...fields,
	});
}

export interface WorldOptions extends Options {
	rig?: NexRigOptions;
}

export async function world(answers: Answers, { rig: rigOptions = {}, ...options }: WorldOptions = {}) {
	const { engine, calls } = await engineOf(answers, options);
	const requests: EngineRequest[] = [];
	const parts = nexRig(
		(request, _signal, context) => {
			requests.push(request);
			return engine.run(request, context);
		},
		{
			config: configOf(),
			...rigOptions,
			engineFields: { continues: true, injects: true, configHash: engine.configHash! },
		},
	);
	await parts.nex.load();
	await parts.nex.recover();
	return {
		...parts,
		calls,
		requests,
		/** In the group `g`. */
		say: (sender: string, text: string, name = sender) =>
			parts.hear(text, {
				from: { id: sender, name },
				chat: { id: "g", type: "group" },
				target: { to: "g" },
				mention: true,
			}),
		press: (sender: string, button: string, id: string, chat = "g", channel = "telegram") =>
			parts.nex.pressed({
				channel,
				account: "bot",
				choice: { eventId: "e", id, choice: button, from: { id: sender }, chat: { id: chat, type: "group" } },
			}),
		async pending() {
			await until(() => parts.broker.approvals.pending().length === 1, "a question");
			await until(() => parts.questions.length > 0, "somebody is asked");
			return parts.broker.approvals.pending()[0]!;
		},
	};
}

export type World = Awaited<ReturnType<typeof world>>;
