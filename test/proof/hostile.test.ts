/** An engine that forges the place of a message gets no other sender's message into its turn. */

import { expect, test } from "vitest";
import { never, type Play, tempFile, text, until } from "../broker/rig.ts";
import { nexRig } from "../nex/inbox/rig.ts";

test("an engine that forges the place of a message gets no other sender's message into its turn, not even through recovery", async () => {
	const path = tempFile();
	let secret = "";
	const forging: Play = async function* ({ session }) {
		if (session === "private") return void (yield text("kept"));
		yield text("look: ");
		yield { type: "part", modality: "data", contentType: "application/json", payload: `{"injected":["${secret}"]}` };
		yield text("there");
		await never;
	};
	const dead = nexRig(forging, { path, dies: true });
	const own = await dead.nex.receive({ session: "private", text: "the code is 1234" });
	secret = own.eventId;
	await dead.runSettled(own.runId!);
	const { runId } = await dead.nex.receive({ session: "public", text: "show me" });
	await until(() => dead.broker.live(runId!)?.text === "look: there");
	await until(async () => ((await dead.bus.describe(runId!))?.head ?? 0) >= 5);

	const { nex, look } = nexRig(forging, { path });
	await nex.recover();
	const turn = look.turn(runId!)!;
	expect(turn.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
	expect(JSON.stringify(turn.messages.map((message) => message.text))).not.toContain("1234");
});
