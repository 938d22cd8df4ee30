/** Questions to the people of a chat: a delivery like any other, whose message has buttons where the platform has them. */

import { buttonsFault, nonceOf, type Question, questionFault, type Target } from "@nexus-stream/adapter/host";
import { isSameChat } from "@nexus-stream/platforms";
import { NexusError, newId, Refused } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Delivery } from "../../ledger/ledger.ts";
import type { AskChoice, AskRequest } from "../port.ts";
import { type PlanDeps, take } from "./planned-deliveries.ts";
import { sleep } from "./sleep.ts";
import { writeTextLog } from "./text-log.ts";

/** Of one question: as many as there are chats that anybody would ask. */
const CHATS_MAX = 100;
const SETTLE_TRIES = 5;
const SETTLE_RETRY_MS = 1000;

type Taken = Awaited<ReturnType<typeof take>>;

/** How it is asked, and what came of it: each a text of its own, whose log says which question it belongs to. */
const FORMS = ["buttons", "words"] as const;
const logOf = (id: string, what: (typeof FORMS)[number] | "done"): string => `ask_${id}_${what}`;

export async function ask(deps: PlanDeps, request: AskRequest): Promise<Taken> {
	const { account, target, id, choices, text } = request;
	check(request, deps.limits.textCharsMax);
	deps.accounts.check(account.channel, account.id);
	// An adapter that cannot be asked now may have buttons or not: words are understood in any case.
	const info = await deps.accounts.infos.ask(account.channel).catch(() => undefined);
	const question: Question = { id, choices: choices.map(({ reply: _reply, ...choice }) => choice) };
	const earlier = (await questionDeliveries(deps, id)).find(
		(row) =>
			row.channel === account.channel && row.account === account.id && isSameChat(row.channel, row.target, target),
	);
	// Asked again, it is asked the same way.
	const buttons = earlier ? "ask" in earlier.options : info !== undefined && buttonsFault(info, question) === undefined;
	const runId = logOf(id, buttons ? "buttons" : "words");
	await ensureLog(deps, runId, buttons ? text : `${text}\n\n${inWords(choices)}`);
	return take(deps, { account, target, runId, options: { disableStreaming: true, ...(buttons && { ask: question }) } });
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

/** Written once, whoever asks again, and in however many chats at the same time. */
async function ensureLog({ bus, stamp, inOrder, signal }: PlanDeps, log: string, text: string): Promise<void> {
	await inOrder(log, signal, async () => {
		if (await bus.describe(log)) return;
		try {
			await writeTextLog(bus, text, stamp, log);
		} catch (cause) {
			// Another daemon asks the same.
			if (!(cause instanceof Refused) || cause.refusal !== "duplicate") throw cause;
		}
	});
}

interface SettleDeps extends PlanDeps {
	clock: Clock;
	log: Log;
}

/** What has to be delivered because a question cannot be changed where it stands. */
export async function settleQuestions(deps: SettleDeps, id: string, text: string): Promise<Taken[]> {
	const taken: Taken[] = [];
	for (const row of await questionDeliveries(deps, id)) {
		if (await settle(deps, id, row, text)) continue;
		const { channel, account, target } = row;
		const runId = logOf(id, "done");
		await ensureLog(deps, runId, text);
		const place = { account: { channel, id: account }, target: target as Target, runId };
		taken.push(await take(deps, { ...place, options: { disableStreaming: true } }));
	}
	return taken;
}

async function questionDeliveries({ deliveries }: PlanDeps, id: string): Promise<Delivery[]> {
	const rows = await Promise.all(
		FORMS.map(async (form) => deliveries.list({ runId: logOf(id, form), limit: CHATS_MAX })),
	);
	return rows.flat();
}

/** Takes the buttons away. False: there are none, or they cannot be taken away. */
async function settle(deps: SettleDeps, id: string, delivery: Delivery, text: string): Promise<boolean> {
	if (!("ask" in delivery.options)) return false;
	const { runner, deliveries, accounts, clock, stamp, signal, log } = deps;
	// A question that is still on its way gets its buttons first.
	await runner.settled(delivery.id);
	const row = (await deliveries.get(delivery.id)) ?? delivery;
	const messageId = row.messages.findLast(({ state }) => state === "sent")?.messageId;
	if (messageId === undefined) return false;
	// A nonce of its own: it may be said twice at the same time.
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
		if (tries > 0) await sleep(clock, SETTLE_RETRY_MS * 2 ** (tries - 1), signal);
		const account = accounts.of(row.channel, row.account);
		const answer = await account
			.send(await account.info())
			.request(line, signal)
			.catch((cause: unknown) => ({ type: "lost" as const, error: String(cause) }));
		if (answer.type === "sent") return true;
		log.info({ delivery: row.id, id, answer, tries: tries + 1 }, "a question's buttons could not be taken away");
		if (answer.type === "refused" && answer.code !== "unavailable" && answer.code !== "rate_limited") return false;
	}
	return false;
}
