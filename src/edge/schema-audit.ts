/** The shapes of the API about the audit log and the events of agents. */

import { z } from "zod";
import type * as wire from "../protocol/protocol.ts";
import { component, count, type Fields, limit, offset } from "./schema.ts";

const appId = z
	.string()
	.regex(
		/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
		"must be 1 to 64 letters, digits and . _ - beginning with a letter or digit",
	);
const name = z.string().min(1).max(128);
const instant = z.iso
	.datetime({ offset: true })
	.transform((text) => Date.parse(text))
	.describe("RFC 3339, such as 2026-11-17T00:00:00Z.");

const filter = {
	app_id: appId.optional(),
	domain: name.optional().describe("Such as `runs`, `messages` or `sign-in`."),
	operation: name.optional().describe("Such as `started` or `refused`."),
	since: instant.optional(),
	until: instant.optional(),
};

export const auditQuery = z.object({
	...filter,
	limit,
	before: offset.optional().describe("A sequence: only older events."),
});

export const auditExportQuery = z.object({
	...filter,
	format: z.enum(["ndjson", "csv"]).optional().describe("`ndjson` when left out."),
	after: offset.optional().describe("Strictly after this sequence: where an export that was cut goes on."),
});

export const agentEventsQuery = z.object({
	session: name.optional().describe("Only events of this session."),
	agent: name.optional().describe("Only events of this agent."),
	after: offset.optional().describe("Left out: from now on. 0: from the earliest kept."),
});

const AuditEventView = component(
	"AuditEvent",
	z.object({
		sequence: count,
		timestamp: z.string(),
		domain: z.string(),
		operation: z.string(),
		app_id: z.string().exactOptional(),
		subject_user_id: z.string().exactOptional(),
		reason_code: z.string().exactOptional() as z.ZodExactOptional<z.ZodType<wire.Reason>>,
		trace_id: z.string().exactOptional(),
		caller: z.string().exactOptional(),
		payload: z
			.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
			.describe("Ids and numbers: never the text of a message, an argument or a secret.")
			.exactOptional(),
	} satisfies Fields<wire.AuditEventJson>),
);

export const AuditList = component(
	"AuditList",
	z.object({
		events: z.array(AuditEventView),
		next_before: count.exactOptional().describe("What to give as `before` for older ones; absent: there are none."),
	} satisfies Fields<wire.AuditListJson>),
);
