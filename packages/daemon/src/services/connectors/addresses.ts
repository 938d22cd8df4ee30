/** The addresses that may be dialled: those of connectors by the operator's rules, those in an application's request only on the internet. */

import { AddressRefused, type Guard } from "@nexus-stream/adapter/net/address-guard";
import type { GuardedFetch, ResolveName } from "@nexus-stream/adapter/net/guarded-fetch";
import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { loadOnce } from "../../std/load-once.ts";
import { addressFailure, type ProviderFetch } from "./wire.ts";

export interface AddressRules {
	/** Addresses of one's own that connectors may have. */
	rules: Guard;
	/** Applications whose own addresses follow `rules`, too. Those of others have to be on the internet. */
	inlineApps?: readonly string[] | undefined;
	/** For tests: all addresses of a name. */
	resolve?: ResolveName;
}

export class Addresses {
	readonly #inlineApps: readonly string[];
	readonly #own: GuardedAddresses;
	readonly #strict: GuardedAddresses;

	constructor({ rules, inlineApps = [], resolve }: AddressRules) {
		this.#inlineApps = inlineApps;
		this.#own = new GuardedAddresses(rules, resolve);
		this.#strict = new GuardedAddresses({}, resolve);
	}

	/** The rules for addresses of connectors or, with `app`, for addresses that a request of this application names. */
	of(app?: string): GuardedAddresses {
		return this.#isStrict(app) ? this.#strict : this.#own;
	}

	/** Rejects when the address may not be dialled now. */
	async check(endpoint: string, app?: string): Promise<void> {
		if (URL.parse(endpoint) === null) throw new NexusError("invalid", "the endpoint is not an address");
		const guard = await this.of(app).guard();
		await guard.check(endpoint).catch((cause: unknown) => {
			if (!(cause instanceof AddressRefused)) throw toNexusError(cause, "unavailable");
			if (cause.refusal === "forbidden" && this.#isStrict(app)) throw foreignAddress(app!);
			throw addressFailure(cause);
		});
	}

	close(): void {
		this.#own.close();
		this.#strict.close();
	}

	#isStrict(app: string | undefined): boolean {
		return app !== undefined && !this.#inlineApps.includes(app);
	}
}

/** Addresses behind one guard. It is made by the first request: most daemons never make one. */
class GuardedAddresses {
	readonly rules: Guard;
	readonly guard: () => Promise<GuardedFetch>;
	readonly fetch: ProviderFetch = async (url, init) => (await this.guard()).fetch(url, init);
	#made: GuardedFetch | undefined;

	constructor(rules: Guard, resolve: ResolveName | undefined) {
		this.rules = rules;
		this.guard = loadOnce(async () => {
			const { guardedFetch } = await import("@nexus-stream/adapter/net/guarded-fetch");
			this.#made = guardedFetch({ ...rules, resolve });
			return this.#made;
		});
	}

	close(): void {
		this.#made?.close();
	}
}

/** Says nothing of what the owner's network has at that address. */
const foreignAddress = (app: string): NexusError =>
	new NexusError(
		"forbidden",
		`a request of an application may name https addresses on the internet only: use a connector, or have the owner name ${app} in connectors.inlineApps`,
		{ reason: "AI_ENDPOINT_FORBIDDEN" },
	);
