import { afterAll, expect, test } from "vitest";
import { answer, asks, engineOf, text } from "../reason-act/kit.ts";
import { everything, isAlive, request, rig } from "./rig.ts";

const { mcp } = rig({ servers: { all: everything } });
afterAll(() => mcp.close());

test("R2-30: a run whose server is killed during a call continues, and the model reads why the call failed", async () => {
	const tools = await mcp.source.tools(request());
	const pid = mcp.status()[0]?.pid ?? 0;
	const slow = "mcp__all__trigger-long-running-operation";
	const { engine, calls } = await engineOf(
		[
			answer(asks(slow, { duration: 2000, steps: 100_000 })),
			answer(asks("mcp__all__echo", { message: "still" })),
			answer(text("done")),
		],
		{ tools: [...tools] },
	);
	const seen: string[] = [];
	for await (const said of engine.run({ ...request(), owner: true }, { signal: new AbortController().signal }))
		for (const event of [said].flat()) {
			if (event.type !== "tool") continue;
			seen.push(`${event.name} ${event.status}`);
			if (event.status === "progress" && isAlive(pid)) process.kill(pid, "SIGKILL");
		}
	expect(seen.filter((line) => !line.endsWith("progress"))).toEqual([
		`${slow} started`,
		`${slow} failed`,
		"mcp__all__echo started",
		"mcp__all__echo completed",
	]);
	expect(JSON.stringify(calls[1]?.messages.at(-1))).toContain("ended by SIGKILL");
	expect(JSON.stringify(calls[2]?.messages.at(-1))).toContain("Echo: still");
});
