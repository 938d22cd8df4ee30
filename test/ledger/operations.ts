/** Random operations on all tables of a store, and what its tables hold afterwards: two stores that got the same operations hold the same. */

import fc from "fast-check";
import { approvalWrites } from "../../packages/daemon/src/ledger/approvals/port.ts";
import { checkpointWrites } from "../../packages/daemon/src/ledger/checkpoints/port.ts";
import { deliveryWrites } from "../../packages/daemon/src/ledger/deliveries/port.ts";
import { executionWrites } from "../../packages/daemon/src/ledger/execution/port.ts";
import { grantWrites } from "../../packages/daemon/src/ledger/grants/port.ts";
import { type Disposition, inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { TABLES } from "../../packages/daemon/src/ledger/ledger.ts";
import { noteWrites } from "../../packages/daemon/src/ledger/notes/port.ts";
import { pairingWrites } from "../../packages/daemon/src/ledger/pairings/port.ts";
import { phaseWrites } from "../../packages/daemon/src/ledger/phases/port.ts";
import { trustWrites } from "../../packages/daemon/src/ledger/trust/port.ts";
import { turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { SQLITE_SERVICE_TABLES } from "../../packages/daemon/src/runtime/data/tables.ts";
import { appWrites, receiptWrites } from "../../packages/daemon/src/services/apps/rows.ts";
import { artifactWrites } from "../../packages/daemon/src/services/artifacts/rows.ts";
import { noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import { connectorWrites } from "../../packages/daemon/src/services/connectors/rows.ts";
import { jobWrites } from "../../packages/daemon/src/services/jobs/rows.ts";
import { idempotencyWrites } from "../../packages/daemon/src/services/kit/rows.ts";
import { memoryWrites } from "../../packages/daemon/src/services/memory/rows.ts";
import { signInWrites } from "../../packages/daemon/src/services/signins/rows.ts";
import { workflowWrites } from "../../packages/daemon/src/services/workflows/rows.ts";
import type { SqlTable } from "../../packages/daemon/src/std/sql/sql.ts";
import type { Write } from "../../packages/daemon/src/std/write.ts";
import { fullTurn, notes, turnOf } from "./rig.ts";

export const allTables: readonly SqlTable<unknown>[] = Object.values({ ...TABLES, ...SQLITE_SERVICE_TABLES });

/** Few ids, so that operations meet. */
const id = fc.constantFrom("a", "b", "c");
const time = fc.nat(20);
const count = fc.integer({ min: 1, max: 3 });
const said = fc.constantFrom("", "tea", "it's ?1", "a\0b", "line\nfeed 🧵", "half \ud83d");
const value = fc.constantFrom<unknown>(null, 1.5, "a\0b", { a: ["\\u0000"] }, []);
const object = fc.constantFrom<Record<string, unknown>>({}, { b: 1, a: { "\0": "\0" } }, { a: { "\0": "\0" }, b: 1 });
const state = fc.constantFrom("queued", "running", "completed");

/** Fields that are there, or not. */
const some = <T extends object>(fields: { [Field in keyof T]: fc.Arbitrary<T[Field]> }) =>
	fc.record(fields, { requiredKeys: [] });

const write = <Args extends unknown[]>(
	make: (...args: Args) => Write,
	...args: { [Nth in keyof Args]: fc.Arbitrary<Args[Nth]> }
): fc.Arbitrary<Write> => fc.tuple(...args).map((all) => make(...(all as Args)));

const place = fc.record({ channel: fc.constantFrom("web", "sms"), account: id });
const person = fc.record({ channel: fc.constant("sms"), account: id, sender: id });

const disposition: fc.Arbitrary<Disposition> = fc.oneof(
	fc.record({ state: fc.constantFrom("started", "batched", "injected"), runId: id }),
	fc.record({ state: fc.constantFrom("rejected", "dropped", "handled", "answered"), because: said }),
	fc.record({ state: fc.constant("superseded" as const), by: id, runId: id }, { requiredKeys: ["state", "by"] }),
	fc.constantFrom<Disposition>({ state: "queued" }, { state: "cancelled" }),
);

const event = fc
	.tuple(
		fc.record({ eventId: id, session: id, text: said, receivedAt: time, disposition }),
		fc.constantFrom<(typeof notes)[][]>([], [notes]).map((list) => [...list]),
		some({ idempotencyKey: id, origin: person.map((all) => ({ ...all, sourceId: all.sender })), facts: object }),
		some({ batch: fc.constant<string[]>(["a"]), traceId: id }),
	)
	.map(([fields, attachments, ...more]) => ({ ...fields, attachments, ...more[0], ...more[1] }));

const turn = fc
	.tuple(
		id,
		some({ session: id, status: fc.constantFrom("completed", "failed"), endedAt: time, continues: id }),
		id,
		fc.boolean(),
	)
	.map(([runId, fields, eventId, full]) => {
		const messages = [{ role: "user" as const, text: "see", eventId, attachments: [notes] }];
		return full ? { ...fullTurn, runId, ...fields } : turnOf(runId, { ...fields, messages });
	});

const message = fc
	.tuple(
		fc.constantFrom({ ordinal: 1, nonce: "n1" }, { ordinal: 2, nonce: "n2" }),
		fc.record({ from: time, state: fc.constantFrom("intended", "open", "sent", "unknown") }),
		some({
			to: time,
			messageId: id,
			shown: time,
			abandoned: fc.constant(true as const),
			edits: fc.nat(2),
			text: said,
			done: time,
		}),
		some({ facts: object, error: said }),
	)
	.map(([key, ...fields]) => Object.assign({}, ...fields, key) as Parameters<typeof deliveryWrites.put>[1]);

const decided = fc
	.tuple(
		fc.constantFrom("approved", "denied", "expired", "withdrawn"),
		time,
		some({ by: id, reason: said, text: said }),
	)
	.map(([state, at, more]) => ({ state, at, ...more }));

const approval = fc
	.tuple(
		fc.record({ id, runId: id, session: id, expiresAt: time, args: value }),
		some({ agent: id, question: said, because: said }),
	)
	.map(([fields, more]) => ({
		...({ callId: "c1", tool: "bash", kind: "approval", digest: "d", state: "pending", createdAt: 1 } as const),
		...fields,
		...more,
	}));

const provenance = fc.tuple(time, some({ runId: id, agent: id, sender: id })).map(([at, more]) => ({ at, ...more }));
const node = fc
	.tuple(id, state, value, some({ output: value, shape: value }))
	.map(([nodeId, stands, status, more]) => ({ nodeId, state: stands, status, ...more }));
const workflow = fc
	.tuple(
		fc.record({
			id,
			appId: id,
			userId: id,
			owner: fc.boolean(),
			name: said,
			definition: value,
			state,
			createdAt: time,
		}),
		some({ finishedAt: time, error: value }),
	)
	.map(([fields, more]) => ({ ...fields, ...more }));
const job = fc.record({ id, appId: id, state, createdAt: time, job: value });
const jobChange = fc
	.tuple(fc.record({ id, state, job: value }), some({ result: value, finishedAt: time }))
	.map(([fields, more]) => ({ ...fields, ...more }));
const connector = fc
	.tuple(
		fc.record({ id, enabled: fc.boolean(), models: fc.constantFrom([], ["m\0"]), revision: count }),
		some({ appId: id, endpoint: said, sealedKey: id }),
	)
	.map(([fields, more]) => ({
		providerType: "openai",
		kinds: ["text"],
		createdAt: 1,
		updatedAt: 2,
		...fields,
		...more,
	}));
const artifact = fc
	.tuple(
		fc.record({ id, appId: id, name: said, sizeBytes: time, expiresAt: time, complete: fc.boolean() }),
		some({ sha256: id }),
	)
	.map(([fields, more]) => ({ mimeType: "text/plain", createdAt: 1, ...fields, ...more }));
const pairing = fc
	.tuple(person, id, fc.constantFrom("pending", "approved"), object, time, some({ senderName: said, approvedAt: time }))
	.map(([who, code, stands, target, expiresAt, more]) => ({
		...who,
		code,
		state: stands,
		target,
		createdAt: 1,
		expiresAt,
		sentAt: 1,
		...more,
	}));
const entry = fc
	.tuple(fc.record({ session: id, at: time, text: said }), some({ runId: id, agent: id, data: object }))
	.map(([fields, more]) => ({ kind: "tool", ...fields, ...more }));
const appId = fc.option(id, { nil: undefined });

const t = turnWrites;
const d = deliveryWrites;

/** Every operation of every table. */
export const anyWrite: fc.Arbitrary<Write> = fc.oneof(
	...[
		write(t.settle, turn),
		write(t.continued, id, id),
		write(t.retrace, id, fc.constant(fullTurn.trace!)),
		write(t.rollBack, id),
	],
	...[
		write(inboxWrites.accept, event),
		write(inboxWrites.forgetRejected, count),
		write(inboxWrites.adopt, fc.array(id, { maxLength: 2 })),
	],
	write(
		inboxWrites.dispose,
		id,
		disposition,
		fc.constantFrom<Disposition["state"][]>(["queued"], ["queued", "started"]),
	),
	write(
		d.open,
		fc.tuple(place, id, object).map(([where, key, options]) => ({
			...where,
			id: key,
			runId: key,
			target: { to: "x", ...options },
			options,
			createdAt: 1,
		})),
	),
	...[write(d.setMode, id, fc.constant("stream" as const), time), write(d.drop, id, fc.constantFrom("n1", "n2"), time)],
	write(
		d.put,
		id,
		message,
		fc.tuple(time, some({ carry: said })).map(([cursor, more]) => ({ cursor, ...more })),
		time,
	),
	write(d.failed, id, fc.constantFrom("n1", "n2"), fc.record({ messageId: id, error: said }), time),
	write(
		d.finish,
		id,
		fc.constantFrom("complete" as const, "failed" as const),
		fc.option(said, { nil: undefined }),
		time,
	),
	...[write(d.reopen, id, time), write(d.adopt, fc.array(id, { maxLength: 2 }))],
	...[
		write(approvalWrites.open, approval),
		write(approvalWrites.decide, approval, decided),
		write(approvalWrites.forget, time, count),
	],
	...[write(approvalWrites.withdrawRun, id, decided), write(approvalWrites.withdrawSession, id, decided)],
	write(
		grantWrites.save,
		fc
			.tuple(person, id, some({ agent: id, digest: id, prefix: said }))
			.map(([who, key, more]) => ({ ...who, id: key, session: "a", tool: "bash", by: "owner", createdAt: 1, ...more })),
	),
	write(grantWrites.revoke, id),
	write(
		checkpointWrites.put,
		fc.tuple(id, time, said, some({ answer: value })).map(([runId, at, data, more]) => ({
			runId,
			session: "a",
			engine: "demo",
			configHash: "h",
			at,
			root: runId,
			data,
			shown: "",
			lengths: { [runId]: at },
			...more,
		})),
	),
	...[
		write(checkpointWrites.remove, id),
		write(checkpointWrites.forget, time),
		write(checkpointWrites.removeNaming, said),
	],
	...[write(executionWrites.add, fc.array(entry, { maxLength: 2 })), write(executionWrites.forget, time, count)],
	...[write(noteWrites.add, place, fc.array(said, { maxLength: 3 })), write(noteWrites.trim, place, count, count)],
	write(noteWrites.set, place, fc.array(fc.tuple(id, said), { maxLength: 3 })),
	...[write(pairingWrites.save, pairing), write(pairingWrites.remove, person), write(pairingWrites.expire, time)],
	...[
		write(phaseWrites.begin, id, id, time),
		write(phaseWrites.enter, id, id, said, time),
		write(phaseWrites.count, id, count, count),
	],
	write(trustWrites.set, id, fc.boolean(), time),
	write(
		appWrites.add,
		fc.record({ id, name: said, tokenHash: fc.uuid(), createdAt: time }),
		fc.constant({ appsMax: 2 }),
	),
	...[write(appWrites.revoke, id, time), write(receiptWrites.settle, id, time), write(receiptWrites.forget, time)],
	write(receiptWrites.add, fc.record({ messageId: id, from: id, to: id, messageType: said, sentAt: time })),
	...[
		write(artifactWrites.add, artifact),
		write(artifactWrites.complete, id, id),
		write(artifactWrites.renew, id, time),
		write(artifactWrites.remove, id),
	],
	...[
		write(
			noticeWrites.post,
			id,
			said.map((text) => text.replaceAll("\n", " ")),
			time,
			appId,
		),
		write(noticeWrites.forget, id, time, count),
	],
	...[
		write(connectorWrites.add, connector, count),
		write(connectorWrites.replace, connector),
		write(connectorWrites.remove, id),
	],
	...[
		write(jobWrites.submit, job, value),
		write(jobWrites.change, jobChange),
		write(jobWrites.forget, time, count, appId),
	],
	write(
		idempotencyWrites.claim,
		fc.record({ appId: id, key: id, digest: id, result: id, at: fc.constantFrom(1, 200_000_000) }),
	),
	...[
		write(idempotencyWrites.forget, time, count),
		write(memoryWrites.forget, fc.record({ id, bank: id }), provenance),
	],
	write(
		memoryWrites.add,
		fc.record({ id, bank: id, text: said, provenance }),
		fc.constant({ itemsMax: 2, itemsTotalMax: 3 }),
	),
	write(signInWrites.add, fc.record({ id, address: said, createdAt: time, expiresAt: time })),
	...[write(signInWrites.revoke, id, time), write(signInWrites.forget, time)],
	...[
		write(workflowWrites.create, workflow, fc.uniqueArray(node, { selector: ({ nodeId }) => nodeId })),
		write(workflowWrites.forget, time, count, appId),
	],
	write(
		workflowWrites.advance,
		id,
		fc
			.tuple(state, some({ error: value, startedAt: time, finishedAt: time }))
			.map(([stands, more]) => ({ state: stands, ...more })),
		fc.array(node, { maxLength: 2 }),
	),
);

type Stored = Readonly<Record<string, unknown>>;

/** Numbers of rows are the store's own: only their order counts. Each is named by the table that it numbers. */
const ROW_NUMBERS: Readonly<Record<string, readonly [column: string, numbers: string]>> = {
	messages: ["turn", "turns"],
	tool_calls: ["turn", "turns"],
	delivery_message: ["delivery", "delivery"],
	job_body: ["seq", "job"],
};

/** The names of all tables that hold rows of operations. */
const TABLE_NAMES = allTables.flatMap(({ schema }) =>
	schema.flatMap((step) => {
		const text = typeof step === "string" ? step : step.sqlite;
		return [...text.matchAll(/CREATE TABLE (?!IF)(\w+)/g)].map(([, name]) => name!);
	}),
);

/** All rows of all tables, alike for every database. `rowsOf` reads one table. */
export async function dump(rowsOf: (table: string) => readonly Stored[] | Promise<readonly Stored[]>) {
	const tables = new Map<string, readonly Stored[]>();
	for (const name of TABLE_NAMES) tables.set(name, await rowsOf(name));
	const placeOf = (table: string, seq: unknown) =>
		tables.get(table)!.filter((row) => Number(row.seq) < Number(seq)).length;
	return Object.fromEntries(
		[...tables].map(([name, rows]) => {
			const [column, numbers] = ROW_NUMBERS[name] ?? ["seq", name];
			// A topic's notices are counted densely: their numbers are part of what is stored.
			const isOwn = name !== "notice";
			const alike = rows.map((row) =>
				column in row && isOwn ? { ...row, [column]: placeOf(numbers, row[column]) } : { ...row },
			);
			return [name, alike.map((row) => JSON.stringify(row, Object.keys(row).sort())).sort()];
		}),
	);
}
