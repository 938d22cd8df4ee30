/** The handlers about the audit log and the events of agents. */

import { NexusError } from "@nexus-stream/protocol";
import type { Batch } from "../../../bus/bus.ts";
import { type AgentEventFilter, agentMatcher } from "../../../services/audit/agents.ts";
import type { AuditFilter } from "../../../services/audit/audit.ts";
import type { AgentEvent } from "../../../services/audit/events.ts";
import { AUDIT_MIME, auditHeader, auditSpelling } from "../../../services/audit/export.ts";
import { AGENTS_TOPIC } from "../../../services/audit/topics.ts";
import type { Services } from "../../../services/services.ts";
import { defined } from "../../../std/defined.ts";
import type { Handlers } from "../../http/handler.ts";
import type { EdgeDeps, EdgeLimits } from "../../port.ts";
import { resumeAfter, SSE, type StreamFormat, upTo } from "../../stream/stream.ts";
import { type Streaming, sendStream } from "../send-stream.ts";
import { AUDIT_ROUTES } from "./routes-audit.ts";

const LIMIT_DEFAULT = 50;

interface AuditHandlerParts extends Streaming {
	deps: EdgeDeps;
	limits: EdgeLimits;
}

export function auditHandlers({ deps, limits, ...streaming }: AuditHandlerParts) {
	const { admitStream } = streaming;
	return {
		async listAudit({ query: { limit = LIMIT_DEFAULT, before, ...query } }) {
			const { records, nextBefore } = await servicesOf(deps).audit.list({
				filter: filterOf(query),
				limit: Math.min(limit, limits.listItemsMax),
				before,
			});
			return { events: records, next_before: nextBefore };
		},
		async exportAudit({ query: { format = "ndjson", after, ...query } }, { caller, outgoing }) {
			admitStream();
			const spelling = auditSpelling(format, filterOf(query));
			const header = auditHeader(format, after);
			const { cursor, head } = await servicesOf(deps).audit.export(after, caller.address);
			const dialect: StreamFormat = {
				headers: { "Content-Type": AUDIT_MIME[format], ...attachment(`audit.${format}`) },
				open: () => ({ open: () => header, text: spelling }),
			};
			const answer = { cursor: upTo(cursor, head), dialect, closes: AUDIT_ROUTES.exportAudit.close };
			return sendStream(streaming, outgoing, answer);
		},
		async streamAgents({ query: { after, ...filter } }, { headers, outgoing }) {
			admitStream();
			const place = resumeAfter(headers.get("last-event-id"), after);
			const cursor = await servicesOf(deps).notices.cursor(AGENTS_TOPIC, place);
			const dialect = agentDialect(cursor.offset, defined(filter));
			return sendStream(streaming, outgoing, { cursor, dialect, closes: AUDIT_ROUTES.streamAgents.close });
		},
	} satisfies Partial<Handlers>;
}

function servicesOf({ services }: EdgeDeps): Services {
	if (!services) throw new NexusError("unavailable", "this daemon keeps no audit log");
	return services;
}

interface FilterQuery {
	app_id?: string | undefined;
	domain?: string | undefined;
	operation?: string | undefined;
	since?: number | undefined;
	until?: number | undefined;
}

const filterOf = ({ app_id, domain, operation, since, until }: FilterQuery): AuditFilter =>
	defined({ appId: app_id, domain, operation, from: since, to: until });

const attachment = (name: string) => ({ "Content-Disposition": `attachment; filename="${name}"` });

/** It begins with the place where the reader is: one that is cut before its first event has something to resume from. */
function agentDialect(after: number, filter: AgentEventFilter): StreamFormat {
	const fits = agentMatcher(filter);
	const { text, heartbeat, ...encoder } = SSE.open();
	const open = () => `${encoder.open?.() ?? ""}id: ${after}\n\n`;
	if (!fits) return { headers: SSE.headers, open: () => ({ open, text, heartbeat }) };
	return { headers: SSE.headers, open: () => Object.assign(someEvents(fits, after, heartbeat), { open }) };
}

/** Events that do not match move a reader on, too: the heartbeat says where it is, so that retention does not pass it. */
function someEvents(fits: (event: AgentEvent) => boolean, after: number, idle: string | undefined) {
	let seen = after;
	let told = after;
	return {
		text({ first, last, records }: Batch): string | undefined {
			let wanted = "";
			for (const [n, record] of records.entries()) {
				if (!fits(JSON.parse(record) as AgentEvent)) continue;
				told = first + n;
				wanted += `id: ${told}\nevent: message\ndata: ${record}\n\n`;
			}
			seen = last;
			return wanted || undefined;
		},
		get heartbeat(): string | undefined {
			if (seen <= told) return idle;
			told = seen;
			return `id: ${seen}\n\n`;
		},
	};
}
