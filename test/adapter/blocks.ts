/** A daemon around the `send` verb: the intent of a block is on disk before its line is written, and what is uncertain is looked up first. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nonceOf } from "../../packages/adapter/src/nonce.ts";
import type { SendStatus, Target } from "../../packages/adapter/src/port.ts";
import { until } from "../until.ts";
import { type AdapterProcess, type Settings, startAdapter } from "./process.ts";

export interface BlocksOptions {
	channel: string;
	settings: Settings;
	target: Target;
	blocks: readonly string[];
	/** Looked at when a block's line was written, and after every status: true kills the process, and another one continues. */
	dies?: (status: SendStatus | { type: "written" }, deaths: number) => boolean | Promise<boolean>;
	deadlineMs?: number;
}

export interface BlocksDelivered {
	messageIds: string[];
	statuses: SendStatus[];
	deaths: number;
	/** Blocks with an unknown outcome; they are not repeated. */
	unknown: string[];
}

/** Dies once at each moment of a send: when the platform has the message and the daemon has no report of it, at a call, at the report, at a look-up. */
export const diesAtEachMoment =
	(visible: () => readonly unknown[]): NonNullable<BlocksOptions["dies"]> =>
	async ({ type }, deaths) => {
		if (type !== ["written", "call", "message_sent", "found"][deaths]) return false;
		if (type === "written") await until("the platform has the message", () => visible().length > 0);
		return true;
	};

export async function deliverBlocks(options: BlocksOptions): Promise<BlocksDelivered> {
	const result: BlocksDelivered = { messageIds: [], statuses: [], deaths: 0, unknown: [] };
	const sender = new Sender(options, result);
	const deadline = Date.now() + (options.deadlineMs ?? 100_000);
	try {
		let position = 0;
		for (const [index, text] of options.blocks.entries()) {
			const nonce = nonceOf("d1", index + 1);
			const range = { from: position, to: position + text.length };
			let uncertain = false;
			for (let over = false; !over; ) {
				if (Date.now() > deadline)
					throw new Error(`not delivered in time: ${JSON.stringify(result.statuses.slice(-5))}`);
				const line = uncertain
					? { type: "find", delivery: "d1", nonce, target: options.target, text }
					: { type: "send", delivery: "d1", nonce, target: options.target, text, ...range };
				const said = await sender.ask(line);
				if (said === undefined) uncertain = true;
				else if (said.type === "found" && said.known && said.messageId === undefined) uncertain = false;
				else {
					over = true;
					settle(said, text, result);
				}
			}
			position += text.length;
		}
	} finally {
		await sender.close();
	}
	return result;
}

function settle(said: SendStatus, text: string, result: BlocksDelivered): void {
	if (said.type === "message_sent") result.messageIds.push(said.messageId);
	else if (said.type === "found" && said.known) result.messageIds.push(said.messageId ?? "");
	else if (said.type === "found") result.unknown.push(text);
	else if (said.type === "delivery_error" && said.code === "unknown_outcome") result.unknown.push(text);
	else throw new Error(JSON.stringify(said));
}

/** One process for many lines, replaced when it dies. */
class Sender {
	private readonly options: BlocksOptions;
	private readonly result: BlocksDelivered;
	private readonly folder: string;
	private adapter: AdapterProcess | undefined;
	private doomed = false;
	private answered: (status: SendStatus | undefined) => void = () => {};

	constructor(options: BlocksOptions, result: BlocksDelivered) {
		this.options = options;
		this.result = result;
		this.folder = mkdtempSync(join(tmpdir(), `nexus-${options.channel}-`));
	}

	/** Undefined when it died before it answered. */
	async ask(line: object): Promise<SendStatus | undefined> {
		const answer = new Promise<SendStatus | undefined>((resolve) => {
			this.answered = resolve;
		});
		this.adapter ??= this.start();
		this.adapter.write(line);
		await this.doom({ type: "written" });
		return await answer;
	}

	async close(): Promise<void> {
		await this.adapter?.end();
		rmSync(this.folder, { recursive: true, force: true });
	}

	private start(): AdapterProcess {
		const { channel, settings } = this.options;
		this.doomed = false;
		const hear = (said: Record<string, unknown>) => void this.hear(said as unknown as SendStatus);
		const adapter = startAdapter(channel, "send", settings, hear, this.folder);
		adapter.child.once("close", () => {
			this.adapter = undefined;
			this.answered(undefined);
		});
		return adapter;
	}

	private async hear(status: SendStatus): Promise<void> {
		if (this.doomed) return;
		this.result.statuses.push(status);
		const passing = status.type === "call" || status.type === "rate_limited";
		const ends = status.type === "message_sent" ? status.final : !passing;
		await this.doom(status);
		if (ends && !this.doomed) this.answered(status);
	}

	private async doom(status: SendStatus | { type: "written" }): Promise<void> {
		// One death, whatever else was said or is looked at meanwhile.
		if (this.doomed || !(await this.options.dies?.(status, this.result.deaths)) || this.doomed) return;
		this.doomed = true;
		this.result.deaths++;
		this.adapter?.child.kill("SIGKILL");
	}
}
