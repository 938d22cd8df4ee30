/** One connection to a server: lists its tools, makes calls with progress and results, and forwards its questions to people. */

import { Client, type ElicitResult, type Progress, ProtocolError } from "@modelcontextprotocol/client";
import { wordsOf } from "@nexus-stream/protocol";
import { printable } from "../../std/clip.ts";
import { unlessAborted } from "../kit/kit.ts";
import type { ToolContext, ToolQuestion, ToolResult } from "../tool.ts";
import { elicit } from "./elicit.ts";
import { type Listing, listingOf } from "./listing.ts";
import type { McpLimits, McpTransport } from "./port.ts";
import { outputValidator, toolResult } from "./result.ts";

export interface ConnectionParts {
	server: string;
	version: string;
	limits: McpLimits;
	link: McpTransport;
	/** The connection is in doubt. */
	doubted(cause: unknown): void;
	warn(facts: object, message: string): void;
}

const PROGRESS_CHARS_MAX = 300;
const LIST_PAGES_MAX = 16;
/** The caller has its own time limit, which pauses while a person is asked. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

export class McpConnection {
	readonly #parts: ConnectionParts;
	readonly #client: Client;
	/** Calls under way, with how many questions each may still lead to. */
	readonly #calls = new Map<ToolContext, number>();
	readonly #eliciting = new Set<ToolContext>();
	/** Its list is not the newest. */
	stale = false;

	constructor(parts: ConnectionParts) {
		this.#parts = parts;
		// Neither sampling nor roots: a server gets no model and no folder of ours.
		const capabilities = { elicitation: { form: {} } };
		this.#client = new Client(
			{ name: "nexus", version: parts.version },
			{ capabilities, listMaxPages: LIST_PAGES_MAX, jsonSchemaValidator: outputValidator(parts.limits) },
		);
		this.#client.onerror = (cause) => parts.doubted(cause);
		this.#client.setNotificationHandler("notifications/tools/list_changed", () => {
			this.stale = true;
		});
		this.#client.setRequestHandler("elicitation/create", async ({ params }, { mcpReq }) => {
			if (params.mode === "url") return { action: "cancel" };
			return await this.#elicit(params, mcpReq.signal);
		});
	}

	get pid(): number | undefined {
		return this.#parts.link.pid;
	}

	get isBusy(): boolean {
		return this.#calls.size > 0;
	}

	/** Shakes hands and asks for the tools. */
	async open(signal: AbortSignal): Promise<Listing> {
		await this.#client.connect(this.#parts.link, { signal, timeout: NO_TIMEOUT_MS });
		return await this.list(signal);
	}

	async list(signal: AbortSignal): Promise<Listing> {
		this.stale = false;
		const options = { signal, timeout: NO_TIMEOUT_MS, cacheMode: "refresh" } as const;
		const { tools } = await this.#client.listTools(undefined, options);
		return listingOf(this.#parts.server, tools, this.#parts.limits);
	}

	/** Rejects when no answer came. An answer that refuses is one, too. */
	async ping(signal: AbortSignal): Promise<void> {
		await this.#client.ping({ signal, timeout: NO_TIMEOUT_MS }).catch((cause: unknown) => {
			if (!(cause instanceof ProtocolError)) throw cause;
		});
	}

	/** Rejects with what the library says. */
	async call(tool: string, args: Record<string, unknown>, context: ToolContext): Promise<ToolResult> {
		this.#calls.set(context, this.#parts.limits.questionsMax);
		try {
			const answer = await this.#client.callTool(
				{ name: tool, arguments: args },
				{
					signal: context.signal,
					timeout: NO_TIMEOUT_MS,
					onprogress: (progress) => context.progress(progressWords(progress)),
				},
			);
			return toolResult(answer, this.#parts.limits);
		} finally {
			this.#calls.delete(context);
		}
	}

	/** Resolves when nothing of it is left, also when it never was open. */
	async close(): Promise<void> {
		await this.#client.close();
		await this.#parts.link.close();
	}

	async #elicit(form: Parameters<typeof elicit>[0]["form"], signal: AbortSignal): Promise<ElicitResult> {
		const { server, warn } = this.#parts;
		const context = this.#askable();
		const left = context ? (this.#calls.get(context) ?? 0) : 0;
		if (!context?.ask || left === 0 || this.#eliciting.has(context)) {
			warn({ server }, "an MCP server asks for a person's answer, but the run has no person to ask");
			return { action: "cancel" };
		}
		const over = AbortSignal.any([signal, context.signal]);
		let asked = 0;
		const ask = (question: ToolQuestion) => {
			if (++asked > left) throw new Error("it asks too much");
			this.#calls.set(context, left - asked);
			return unlessAborted(over, context.ask!(question, over), () => "the call is over");
		};
		this.#eliciting.add(context);
		try {
			return await elicit({ server, form, ask, questionsMax: left });
		} catch (cause) {
			warn({ server, error: wordsOf(cause) }, "an MCP server's question was not answered");
			return { action: "cancel" };
		} finally {
			this.#eliciting.delete(context);
		}
	}

	/** The protocol does not say for which call a server asks: only while all calls are of one run is it certain whom to ask. */
	#askable(): ToolContext | undefined {
		const contexts = [...this.#calls.keys()];
		const runs = new Set(contexts.map(({ request }) => request.runId));
		return runs.size === 1 ? contexts[0] : undefined;
	}
}

function progressWords({ progress, total, message }: Progress): string {
	const count = total === undefined ? `${progress}` : `${progress} of ${total}`;
	return printable(message === undefined ? count : `${message} (${count})`)
		.slice(0, PROGRESS_CHARS_MAX)
		.toWellFormed();
}
