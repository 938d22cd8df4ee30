/** Tokens of one run: the sum of its model calls, and how it divides among agents and models. */

import type { Usage, UsageShare } from "@nexus-stream/protocol";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { isNamed } from "./run/engine-event.ts";

type UsageEvent = Extract<EngineEvent, { type: "usage" }>;

/** Further agents and models count in the sum only. */
const SHARES_MAX = 256;

export class UsageCount {
	#sum: Usage = { input: -1, output: -1 };
	readonly #shares = new Map<string, UsageShare>();

	get sum(): Usage {
		return this.#sum;
	}

	/** Empty when no call named an agent or a model. */
	get shares(): UsageShare[] {
		const shares = [...this.#shares.values()];
		return shares.some(({ agent, model }) => agent !== undefined || model !== undefined) ? shares : [];
	}

	add(event: UsageEvent): void {
		this.#sum = added(this.#sum, event);
		const agent = isNamed(event.agent) ? event.agent : undefined;
		const model = isNamed(event.model) ? event.model : undefined;
		const key = JSON.stringify([agent, model]);
		const share = this.#shares.get(key);
		if (share === undefined && this.#shares.size >= SHARES_MAX) return;
		this.#shares.set(key, { agent, model, usage: added(share?.usage ?? { input: -1, output: -1 }, event) });
	}
}

/** A number stays unknown only if no call reported it. */
function added(before: Usage, event: UsageEvent): Usage {
	const sum: Usage = { ...before };
	for (const [name, count] of Object.entries(event)) {
		if (typeof count !== "number" || count < 0) continue;
		const known = Object.hasOwn(sum, name) ? Math.max(0, sum[name]!) : 0;
		const total = known + Math.round(count);
		if (Number.isSafeInteger(total)) sum[name] = total;
	}
	return sum;
}
