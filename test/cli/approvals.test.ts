import type { Engine, EngineEvent } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import { daemonForTest } from "../runtime/daemon.ts";
import { until } from "../until.ts";
import { nexus, type RunOptions } from "./in-process.ts";

type Asking = NonNullable<Extract<EngineEvent, { type: "tool" }>["asking"]>;

const APPROVAL: Asking = { id: "q", kind: "approval", state: "pending" };
const QUESTION: Asking = { id: "q", kind: "question", state: "pending", question: "Which?", choices: ["red", "blue"] };

async function daemonAsking(asking: Asking) {
	const engine: Engine = {
		name: "asking",
		async *run(_request, { signal, answer }) {
			const call = { type: "tool", callId: "c1", name: "bash" } as const;
			yield { ...call, status: "progress", args: { command: "ls" }, asking };
			const given = await answer!("q", signal);
			const { state, text = "", reason = "" } = given;
			yield { ...call, status: "progress", asking: { ...asking, state } };
			yield { ...call, status: state === "denied" ? "failed" : "completed" };
			yield { type: "text", delta: [state, text, reason].filter((word) => word !== "").join(" ") };
		},
	};
	const { data } = await daemonForTest({ engine });
	const run = (args: string[], options: RunOptions = {}) => nexus([...args, "--data", data], options);
	const idIn = async (running: ReturnType<typeof nexus>) => {
		await running.until(({ err }) => /\[[A-Z]\d[A-Z]\d\]/.test(err));
		return /\[([A-Z]\d[A-Z]\d)\]/.exec(running.err)![1]!;
	};
	return { run, idIn };
}

describe("without a terminal", () => {
	test("send prints the id and the command, and never prompts; `approve` lets it go on", async () => {
		const { run, idIn } = await daemonAsking(APPROVAL);
		const sent = run(["send", "hi"]);
		const id = await idIn(sent);
		await until("the command", () => sent.err.includes(`nexus approve ${id}`));
		expect(sent.err).toContain(`[${id}] needs approval: bash {"command":"ls"}`);
		const listed = await run(["approvals"]).end();
		expect(listed.out).toContain(`${id}\tpending`);
		const approved = await run(["approve", id.toLowerCase()]).end();
		expect(approved).toMatchObject({ code: 0, out: `${id} approved: bash {"command":"ls"}\n` });
		expect(await sent.end()).toMatchObject({ code: 0, out: "approved\n" });
		const again = await run(["deny", id]).end();
		expect(again.code).toBe(5);
		expect(again.err).toContain(`${id} is approved already by the owner`);
	});

	test("says why a person is asked whatever the policy says", async () => {
		const because = "words of Eve\u202e (1002) on telegram\nare in the conversation";
		const shown = "words of Eve\\u202e (1002) on telegram are in the conversation";
		const { run, idIn } = await daemonAsking({ ...APPROVAL, because, once: true });
		const sent = run(["send", "hi"], { tty: true });
		const id = await idIn(sent);
		await until("the prompt", () => sent.err.includes(`Approve ${id}? [y]es, [n]o: `));
		expect(sent.err).toContain(`  because ${shown}`);
		expect((await run(["approvals"]).end()).out).toContain(`bash {"command":"ls"} (asked because ${shown})`);
		expect(JSON.parse((await run(["approvals", "--json"]).end()).out)).toMatchObject({ because: shown });
		const remembered = await run(["approve", id, "--remember"]).end();
		expect(remembered.err).toContain("it can be approved only once");
		await run(["approve", id]).end();
		expect((await sent.end()).out).toContain("approved");
	});

	test("`deny` tells the model why, and `answer` answers", async () => {
		const { run, idIn } = await daemonAsking(APPROVAL);
		const sent = run(["send", "hi"]);
		const id = await idIn(sent);
		await run(["deny", id, "not", "today"]).end();
		expect((await sent.end()).out).toBe("denied not today\n");
		const other = await daemonAsking(QUESTION);
		const asked = other.run(["send", "hi"]);
		const question = await other.idIn(asked);
		await other.run(["answer", question, "green"]).end();
		expect((await asked.end()).out).toBe("answered green\n");
	});

	test("a choice is named by its number; what is asked is neither approved nor denied", async () => {
		const { run, idIn } = await daemonAsking(QUESTION);
		const asked = run(["send", "hi"]);
		const id = await idIn(asked);
		await until("the command", () => asked.err.includes(`nexus answer ${id} <text> (or a number)`));
		const approved = await run(["approve", id]).end();
		expect([approved.code, approved.err]).toEqual([2, expect.stringContaining(`nexus answer ${id} <text>`)]);
		await run(["answer", id, "2"]).end();
		expect((await asked.end()).out).toBe("answered blue\n");
	});

	test("an unknown id is not found, with a hint", async () => {
		const { run } = await daemonAsking(APPROVAL);
		const answer = await run(["approve", "Z9Z9"]).end();
		expect(answer.code).toBe(4);
		expect(answer.err).toContain("`nexus approvals` lists what waits");
	});
});

describe("at a terminal", () => {
	test.each([
		["y", APPROVAL, "approved"],
		["n", APPROVAL, "denied"],
		["2", QUESTION, "answered blue"],
		["mauve", QUESTION, "answered mauve"],
	] as const)("%s decides", async (line, asking, said) => {
		const { run, idIn } = await daemonAsking(asking);
		const sent = run(["send", "hi"], { tty: true });
		const id = await idIn(sent);
		await until("the prompt", () => new RegExp(`(Approve|Answer) ${id}`).test(sent.err));
		sent.type(`${line}\n`);
		expect((await sent.end()).out).toContain(said);
	});

	test("what is allowed for the session is listed and revoked", async () => {
		const { run, idIn } = await daemonAsking(APPROVAL);
		const sent = run(["send", "hi"], { tty: true });
		const id = await idIn(sent);
		await until("the prompt", () => sent.err.includes(`Approve ${id}`));
		sent.type("a\n");
		await sent.end();
		expect((await run(["send", "again"]).end()).out).toBe("approved\n");
		const { out } = await run(["approvals", "--remembered", "--json"]).end();
		const grant = JSON.parse(out) as { id: string; tool: string };
		expect(grant.tool).toBe("bash");
		await run(["approvals", "--revoke", grant.id]).end();
		expect((await run(["approvals", "--remembered"]).end()).out).toBe("");
	});

	test("a decision from elsewhere ends the prompt", async () => {
		const { run, idIn } = await daemonAsking(APPROVAL);
		const sent = run(["send", "hi"], { tty: true });
		const id = await idIn(sent);
		await until("the prompt", () => sent.err.includes(`Approve ${id}`));
		await run(["deny", id]).end();
		expect((await sent.end()).out).toContain("denied");
		expect(sent.err).toContain(`[${id}] denied by the owner`);
	});
});
