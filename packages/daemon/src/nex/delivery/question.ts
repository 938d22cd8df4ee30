/** Questions to the people of a chat: deliveries whose message has buttons where the platform supports them. */

import { buttonsFault, nonceOf, questionFault } from "@nexus-stream/adapter/host";
import type { Question, Target } from "@nexus-stream/adapter/port";
import { isSameChat } from "@nexus-stream/platforms";
import { NexusError, newId, Refused } from "@nexus-stream/protocol";
import { backoffMs, sleep } from "@nexus-stream/protocol/retry";
import type { Delivery } from "../../ledger/deliveries/port.ts";
import type { AskChoice, AskRequest } from "../port.ts";
import type { DeliveryMeans } from "./delivery-context.ts";
import { type PlanDeps, type RecordedDelivery, take, writeTextLog } from "./planned-deliveries.ts";

/** Deliveries of one question. */
const CHATS_MAX = 100;
const SETTLE_TRIES = 5;
const SETTLE_RETRY = { firstMs: 1000, maxMs: 8000 };

/** The two forms of a question and its outcome are separate texts; the name of each log contains the question's id. */
const FORMS = ["buttons", "words"] as const;
const logOf = (id: string, what: (typeof FORMS)[number] | "done"): string => `ask_${id}_${what}`;

export async function ask(deps: PlanDeps, request: AskRequest): Promise<RecordedDelivery> {
	const { account, target, id, choices, text } = request;
	check(request, deps.limits.textCharsMax);
	deps.accounts.check(account.channel, account.id);
	// Without the adapter's info it is unknown whether it supports buttons: a written reply always works.
	const info = await deps.accounts.infos.ask(account.channel).catch(() => undefined);
	const question: Question = { id, choices: choices.map(({ reply: _reply, ...choice }) => choice) };
	const earlier = (await questionDeliveries(deps, id)).find(
		(row) =>
			row.channel === account.channel && row.account === account.id && isSameChat(row.channel, row.target, target),
	);
	// A repeated request uses the same form.
	const buttons = earlier ? "ask" in earlier.options : info !== undefined && buttonsFault(info, question) === undefined;
	const runId = logOf(id, buttons ? "buttons" : "words");
	await ensureLog(deps, runId, buttons ? text : `${text}\n\n${inWords(choices)}`);
	const options = buttons ? { disableStreaming: true, ask: question } : { disableStreaming: true };
	return take(deps, { account, target, runId, options });
}

function check({ id, choices, text }: AskRequest, charsMax: number): void {
	const fault = questionFault({ id, choices }) ?? (text.trim() === "" ? "it has no text" : undefined);
	if (fault !== undefined) throw new NexusError("invalid", `The question cannot be asked: ${fault}.`);
	if (text.length > charsMax) throw new NexusError("too_large", `A text has at most ${charsMax} characters.`);
}

/** Reply `approve K7Q2` or `deny K7Q2`. */
function inWords(choices: readonly AskChoice[]): string {
	const replies = choices.map(({ reply }) => `\`${reply.replaceAll("`", "'")}\``);
	const last = replies.pop() ?? "";
	return `Reply ${replies.length === 0 ? last : `${replies.join(", ")} or ${last}`}.`;
}

/** Writes the log once, also when several chats or callers request it at the same time. */
async function ensureLog({ bus, stamp, byRun, signal }: PlanDeps, log: string, text: string): Promise<void> {
	const write = async () => {
		if (await bus.describe(log)) return;
		try {
			await writeTextLog(bus, text, stamp, log);
		} catch (cause) {
			// Another daemon wrote it first.
			if (!(cause instanceof Refused) || cause.refusal !== "duplicate") throw cause;
		}
	};
	await byRun.run(log, write, signal);
}

type SettleDeps = PlanDeps & Pick<DeliveryMeans, "clock" | "log">;

/** Replaces the buttons of a question by its outcome. Returns the messages to deliver where the question cannot be edited. */
export async function settleQuestions(deps: SettleDeps, id: string, text: string): Promise<RecordedDelivery[]> {
	const recorded: RecordedDelivery[] = [];
	for (const row of await questionDeliveries(deps, id)) {
		if (await settle(deps, id, row, text)) continue;
		const { channel, account, target } = row;
		const runId = logOf(id, "done");
		await ensureLog(deps, runId, text);
		const place = { account: { channel, id: account }, target: target as Target, runId };
		recorded.push(await take(deps, { ...place, options: { disableStreaming: true } }));
	}
	return recorded;
}

async function questionDeliveries({ deliveries }: PlanDeps, id: string): Promise<Delivery[]> {
	const rows = await Promise.all(
		FORMS.map(async (form) => deliveries.list({ runId: logOf(id, form), limit: CHATS_MAX })),
	);
	return rows.flat();
}

/** Removes the buttons. False when there are none, or they cannot be removed. */
async function settle(deps: SettleDeps, id: string, delivery: Delivery, text: string): Promise<boolean> {
	if (!("ask" in delivery.options)) return false;
	const { runner, deliveries, accounts, clock, stamp, signal, log } = deps;
	// A question that is still being sent gets its buttons first.
	await runner.settled(delivery.id);
	const row = (await deliveries.get(delivery.id)) ?? delivery;
	const messageId = row.messages.findLast(({ state }) => state === "sent")?.messageId;
	if (messageId === undefined) return false;
	// A fresh nonce: two requests may be open at the same time.
	const line = {
		type: "asked" as const,
		delivery: row.id,
		nonce: nonceOf(newId("ask", stamp()), 1),
		target: row.target as Target,
		messageId,
		id,
		text,
	};
	for (let tries = 0; tries < SETTLE_TRIES && !signal.aborted; tries++) {
		if (tries > 0) await sleep(clock, backoffMs(SETTLE_RETRY, tries - 1), signal);
		const account = accounts.of(row.channel, row.account);
		const answer = await account
			.send(await account.info())
			.request(line, signal)
			.catch((cause: unknown) => ({ type: "lost" as const, error: String(cause) }));
		if (answer.type === "sent") return true;
		log.info({ delivery: row.id, id, answer, tries: tries + 1 }, "the buttons of a question could not be removed");
		if (answer.type === "refused" && answer.code !== "unavailable" && answer.code !== "rate_limited") return false;
	}
	return false;
}
