/** The inside of an audited daemon: a scripted model, tools, approvals, messages from a platform. */

import { createBroker } from "../../../packages/daemon/src/broker/broker.ts";
import { reasonActEngine } from "../../../packages/daemon/src/engine/reason-act/reason-act.ts";
import type { Tool } from "../../../packages/daemon/src/engine/tool.ts";
import { createNex } from "../../../packages/daemon/src/nex/nex.ts";
import { createAuditLog } from "../../../packages/daemon/src/services/audit/audit.ts";
import type { AgentEvent, MemoryEvent } from "../../../packages/daemon/src/services/audit/events.ts";
import { createTelling } from "../../../packages/daemon/src/services/audit/mappers.ts";
import { noticeLogs } from "../../../packages/daemon/src/services/audit/notices.ts";
import { type AuditRecord, auditLine, createAudit } from "../../../packages/daemon/src/services/audit/record.ts";
import type { Clock } from "../../../packages/protocol/src/clock.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { answer, modelOf, setupOf, text } from "../../engine/reason-act/kit.ts";
import { outboundOf } from "../../nex/inbox/rig.ts";
import { storeForTest } from "../../store.ts";
import { until } from "../../until.ts";

export interface ToldOptions {
	answers?: Parameters<typeof modelOf>[0];
	tools?: Tool[];
	clock?: Clock;
	path?: string;
	dies?: boolean;
}

/** A store whose Bus tells, with the audit log over it. */
export function toldStore({ clock = manualClock(1000), path, dies }: ToldOptions = {}) {
	const tell = createTelling(clock);
	const options = { path, dies: dies || undefined };
	const store = storeForTest({ tell, connection: "none", ...options });
	const { bus, rows, stored } = store;
	const notices = noticeLogs({ bus, rows });
	const audit = createAudit(clock);
	const auditLog = createAuditLog({ bus, rows, notices, audit, clock, log: silentLog });
	const lines = (topic: string): string[] => {
		const found: string[] = [];
		for (let page = stored.notices.read(topic, 0, 1000); page; page = stored.notices.read(topic, found.length, 1000))
			found.push(...page.text.split("\n"));
		return found;
	};
	const records = <T>(topic: string) => lines(topic).map((line) => JSON.parse(line) as T);
	return {
		...store,
		clock,
		notices,
		audit,
		auditLog,
		lines,
		/** All audit entries, spelled as in an export. */
		everything: () =>
			["audit", "agents", "memory"]
				.flatMap((topic) => lines(topic).map((line, n) => auditLine(n + 1, line)))
				.join("\n"),
		events: () => records<AuditRecord>("audit"),
		agentEvents: () => records<AgentEvent>("agents"),
		memoryEvents: () => records<MemoryEvent>("memory"),
		/** `domain/operation` of each, in order. */
		told: () => records<AuditRecord>("audit").map(({ domain, operation }) => `${domain}/${operation}`),
	};
}

const config = { channels: { telegram: { acl: { owner: ["ann"] }, accounts: { bot: {} } } } };

export async function toldRig(options: ToldOptions = {}) {
	const { answers = [answer(text("Fine."))], tools = [], clock = systemClock } = options;
	const store = toldStore(options);
	const { bus, ledger } = store;
	const { model } = modelOf(answers);
	const engine = reasonActEngine(await setupOf({}, model, tools));
	const broker = createBroker({ log: silentLog, bus, ledger, engine, clock, execution: { arguments: true } });
	const { outbound, launched } = outboundOf();
	const nex = createNex({ broker, bus, ledger, outbound, engine, config, clock });
	await nex.load();
	const { recovered } = await nex.recover();
	const settled = (runId: string) =>
		until(`${runId} settles`, () => store.stored.turns.get(runId) !== undefined && !broker.live(runId));
	return { ...store, broker, nex, settled, launched, recovered };
}
