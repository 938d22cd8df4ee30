import { expect, test } from "vitest";
import { createTurns } from "../../../packages/daemon/src/services/workflows/turns.ts";

const never = new AbortController().signal;

test("I11: applications take turns, however many one of them asks for", async () => {
	const turns = createTurns(1);
	const order: string[] = [];
	await turns.enter("a", never);
	const asked = ["a", "a", "a", "b", "b", "c"].map((appId) =>
		turns.enter(appId, never).then(() => void order.push(appId)),
	);
	for (const _ of asked) {
		turns.leave();
		await new Promise<void>((resolve) => setImmediate(resolve));
	}
	expect(order).toEqual(["b", "c", "a", "b", "a", "a"]);
	turns.leave();
	await turns.enter("a", never);
});

test("who gives up waits no more, and takes no place", async () => {
	const turns = createTurns(1);
	await turns.enter("a", never);
	const stopping = new AbortController();
	const gone = turns.enter("b", stopping.signal);
	const next = turns.enter("c", never);
	stopping.abort(new Error("cancelled"));
	await expect(gone).rejects.toThrow("cancelled");
	turns.leave();
	await next;
});
