import { afterEach, beforeEach, expect, test } from "vitest";
import { createNex, type Nex, type Plugin } from "../../../packages/daemon/src/nex/nex.ts";
import { until } from "../../broker/rig.ts";
import { createRig, type Rig } from "../../edge/rig.ts";
import { messageOf, outboundOf } from "./rig.ts";

let rig: Rig;
let nex: Nex;

const guard: Plugin = {
	name: "guard",
	onReceive: ({ event }) => (event.text === "bad" ? { reject: "it is bad" } : undefined),
};

beforeEach(async () => {
	rig = await createRig({ deps: { submit: (message) => nex.receive(message) } });
	const { broker, bus, ledger } = rig;
	nex = createNex({ broker, bus, ledger, outbound: outboundOf().outbound, plugins: [guard] });
});
afterEach(async () => {
	nex.close();
	await rig.close();
});

const json = async <T>(response: Response) => ({ status: response.status, body: (await response.json()) as T });

test("the edge's messages go through the pipeline, and a run tells its trace", async () => {
	const { runId, eventId, puppet } = await rig.start("main", "hi");
	expect((await json(await rig.get(`/v1/runs/${runId}`))).body).not.toHaveProperty("trace");
	puppet.say("hello");
	puppet.finish();
	await until(async () => (await rig.ledger.turns.get(runId)) !== undefined);
	const { body } = await json(await rig.get(`/v1/runs/${runId}`));
	expect(body).toMatchObject({
		trace: {
			channel: "web",
			account: "web",
			sender: "owner",
			deliveries: [],
			hooks: [{ plugin: "guard", hook: "onReceive", outcome: "ok", ms: expect.any(Number) }],
		},
	});
	expect((await json(await rig.get(`/v1/events/${eventId}`))).body).toMatchObject({ channel: "web", sender: "owner" });
});

test("what a plugin rejects is refused with its reason, and is in the list of events", async () => {
	const { status, body } = await json(await rig.post("/v1/sessions/main/messages", { text: "bad" }));
	expect([status, body]).toEqual([409, { error: { code: "conflict", message: "not accepted: it is bad" } }]);
	const listed = await json(await rig.get("/v1/events?state=rejected"));
	expect(listed.body).toMatchObject({ events: [{ text: "bad", because: "it is bad" }] });
});

test("I10: batched and superseded messages can be looked up", async () => {
	const say = (text: string) =>
		nex.receive({ channel: "signal", account: "a", message: messageOf(text), public: false });
	const one = await say("one");
	// Both come while the first is still being stopped.
	const puppet = rig.puppet(one.runId!);
	puppet.isDeaf = true;
	const two = await say("two");
	const three = await say("three");
	puppet.finish();
	const view = async (eventId: string) =>
		(await json<Record<string, unknown>>(await rig.get(`/v1/events/${eventId}`))).body;
	await until(async () => (await view(three.eventId)).disposition === "batched", "the batch");
	const { run_id: runId } = await view(three.eventId);
	expect(await view(one.eventId)).toMatchObject({
		disposition: "superseded",
		superseded_by: two.eventId,
		run_id: one.runId,
	});
	expect(await view(two.eventId)).toMatchObject({
		disposition: "batched",
		run_id: runId,
		channel: "signal",
		account: "a",
	});
	const { body } = await json(await rig.get("/v1/events?channel=signal&limit=1"));
	expect(body).toMatchObject({
		events: [{ batch: [two.eventId, three.eventId], disposition: "started", run_id: runId }],
	});
});
