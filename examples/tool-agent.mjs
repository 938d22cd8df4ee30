// @ts-check
/** An agent with a tool and a card: it looks a product up, says what it found, and shows it as a card. */

import { setTimeout as sleep } from "node:timers/promises";

const SHOP = [
	{ title: "Lamp", price: "€ 48.00", description: "Bright enough to read by." },
	{ title: "Notebook", price: "€ 9.50", description: "96 numbered pages." },
	{ title: "Mug", price: "€ 17.90", description: "Keeps tea warm." },
];

/**
 * A real tool would ask a database or a service here.
 *
 * @param {string} query
 * @param {AbortSignal} signal
 */
async function findProduct(query, signal) {
	await sleep(300, undefined, { signal });
	return SHOP.find((product) => query.toLowerCase().includes(product.title.toLowerCase()));
}

/** @satisfies {import("nexus-stream").Engine} */
const shop = {
	name: "shop",
	async *run({ messages, runId }, { signal }) {
		const query = messages.at(-1)?.text ?? "";
		const call = /** @type {const} */ ({ type: "tool", callId: `${runId}:1`, name: "find_product" });
		yield { ...call, status: "started", args: { query } };
		const product = await findProduct(query, signal);
		yield {
			...call,
			status: "completed",
			summary: product ? `found ${product.title}` : "found nothing",
			result: product,
		};
		if (!product) {
			yield { type: "text", delta: `I have no such thing. Ask for: ${SHOP.map(({ title }) => title).join(", ")}.` };
			return;
		}
		yield { type: "text", delta: `The **${product.title}** costs ${product.price}:` };
		// A part is shown once the text yielded before it has been shown.
		yield { type: "part", modality: "card", contentType: "application/json", payload: JSON.stringify(product) };
		yield { type: "text", delta: "\n\nShall I wrap it?" };
	},
};

export default shop;
