/** The nine steps before a run, in order: every fault alone, and every pair of them (Z9, R4-27 to R4-31, K-STREAM-002). */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ConnectorInfo } from "../../../packages/daemon/src/services/connectors/port.ts";
import type { Principal } from "../../../packages/daemon/src/services/kit/principal.ts";
import type { ScenarioRequest } from "../../../packages/daemon/src/services/scenarios/port.ts";
import { grpcStatusOf, NexusError, reasonOf } from "../../../packages/protocol/src/protocol.ts";
import { openStore, type TestStore } from "../../store.ts";
import { admittedOf, appPrincipal, connectorOf, HELLO, OWNER, requestOf, rig, saying } from "./rig.ts";

/** The parts of a request before it is sent: each fault changes its part. */
interface Draft {
	head: ScenarioRequest["head"];
	spec: ScenarioRequest["spec"];
	metadata: Record<string, string>;
	connector: Partial<ConnectorInfo>;
	principal: Principal;
	idempotencyKey?: string;
}

interface Fault {
	step: number;
	name: string;
	status: number;
	reason: string;
	spoil(draft: Draft): void;
}

const fault = (step: number, name: string, [status, reason]: Verdict, spoil: Fault["spoil"]): Fault => {
	return { step, name, status, reason, spoil };
};

/** Sends this metadata. */
const says =
	(name: string, value: string): Fault["spoil"] =>
	({ metadata }) =>
		void Object.assign(metadata, { [`x-nexus-${name}`]: value });
/** Has this connector. */
const having =
	(fields: Partial<ConnectorInfo>): Fault["spoil"] =>
	({ connector }) =>
		void Object.assign(connector, fields);
const asking =
	(spec: ScenarioRequest["spec"]): Fault["spoil"] =>
	(draft) =>
		void Object.assign(draft, { spec });

const INVALID = 3;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const FAILED_PRECONDITION = 9;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

type Verdict = readonly [status: number, reason: string];
const ENVELOPE: Verdict = [INVALID, "PROTOCOL_ENVELOPE_INVALID"];
const FORBIDDEN: Verdict = [PERMISSION_DENIED, "FORBIDDEN"];
const CONFLICT: Verdict = [INVALID, "AI_REQUEST_CREDENTIAL_CONFLICT"];
const CREDENTIAL_MISSING: Verdict = [INVALID, "AI_REQUEST_CREDENTIAL_MISSING"];
const NO_CONNECTOR: Verdict = [NOT_FOUND, "AI_CONNECTOR_NOT_FOUND"];
const NO_ENDPOINT: Verdict = [PERMISSION_DENIED, "AI_ENDPOINT_FORBIDDEN"];
const NO_MODEL: Verdict = [NOT_FOUND, "AI_MODEL_NOT_FOUND"];

const parse = fault(1, "no message", ENVELOPE, asking({ kind: "text", messages: [] }));
const longKey = fault(
	1,
	"an idempotency key over 256 bytes",
	ENVELOPE,
	(draft) => (draft.idempotencyKey = "é".repeat(129)),
);
const keySource = fault(1, "a key source that does not exist", ENVELOPE, says("key-source", "guess"));
const token = fault(2, "a wrong user token", [UNAUTHENTICATED, "USER_TOKEN_INVALID"], says("user-token", "wrong"));
const app = fault(3, "no application", [INVALID, "APP_ID_REQUIRED"], ({ head }) => (head.appId = ""));
const managedSource = fault(4, "a key in addition to a connector", CONFLICT, ({ metadata }) =>
	Object.assign(metadata, { "x-nexus-key-source": "managed", "x-nexus-provider-api-key": "sk" }),
);
const missing = fault(5, "no such connector", NO_CONNECTOR, having({ id: "another" }));
const disabled = fault(
	6,
	"a disabled connector",
	[FAILED_PRECONDITION, "AI_CONNECTOR_DISABLED"],
	having({ enabled: false }),
);
const remote = fault(7, "a private address", NO_ENDPOINT, having({ endpoint: "https://private.example" }));
const model = fault(9, "an unknown model", NO_MODEL, ({ head }) => (head.model = "huge"));
const MANAGED = [parse, longKey, keySource, token, app, managedSource, missing, disabled, remote, model];

const inlineSource = fault(
	4,
	"no key",
	CREDENTIAL_MISSING,
	({ metadata }) => delete metadata["x-nexus-provider-api-key"],
);
const inlineEndpoint = fault(
	8,
	"a private address of the request",
	NO_ENDPOINT,
	says("provider-endpoint", "https://private.example"),
);
const inlineModel = fault(9, "no model", NO_MODEL, ({ head }) => delete head.model);
const INLINE = [parse, longKey, keySource, token, app, inlineSource, inlineEndpoint, inlineModel];

const KEY = {
	"x-nexus-key-source": "inline",
	"x-nexus-provider-type": "openai",
	"x-nexus-provider-api-key": "sk-secret",
};

const managedDraft = (): Draft => ({
	head: { appId: "shop", userId: "", connectorId: "main" },
	spec: HELLO,
	metadata: {},
	connector: {},
	principal: OWNER,
});
const inlineDraft = (): Draft => ({
	...managedDraft(),
	head: { appId: "shop", userId: "", model: "small" },
	metadata: { ...KEY },
});

/** One for all: an admission leaves nothing in it, as every case checks. */
let store: TestStore;
beforeAll(() => {
	store = openStore(":memory:");
});
afterAll(() => store.close());

function send(
	{ head, spec, metadata, connector, principal, idempotencyKey = "" }: Draft,
	more: Partial<ScenarioRequest> = {},
) {
	const verifyUser = async (said: string) => {
		if (said.startsWith("user:")) return said.slice(5);
		throw new NexusError("unauthenticated", "not valid", { reason: "USER_TOKEN_INVALID" });
	};
	const opened = rig(saying("hi"), { store, connectors: [connectorOf("main", connector)], verifyUser });
	return {
		...opened,
		admitted: opened.scenarios.admit({ ...requestOf({ head, spec, idempotencyKey }, metadata), ...more }, principal),
	};
}

/** Fails with what a step says, and leaves nothing on record. */
async function expectFault(draft: Draft, { status, reason }: Pick<Fault, "status" | "reason">) {
	const { admitted, bus, stored } = send(draft);
	const error = await admitted.then(
		() => undefined,
		(cause: unknown) => cause,
	);
	expect(error).toBeInstanceOf(NexusError);
	const { code, reason: said = reasonOf(code) } = error as NexusError;
	expect([grpcStatusOf(code), said]).toEqual([status, reason]);
	expect(await bus.list()).toEqual([]);
	expect(stored.idempotency.isOlder(Number.MAX_SAFE_INTEGER)).toBe(false);
	expect((error as Error).message).not.toContain("sk-secret");
}

const pairsOf = (faults: readonly Fault[]) =>
	faults.flatMap((first, n) => faults.slice(n + 1).map((second) => [first, second] as const));

describe.each([
	["managed", MANAGED, managedDraft],
	["inline", INLINE, inlineDraft],
] as const)("K-KEYSRC-004: %s credentials", (_, faults, draftOf) => {
	test("without a fault the call is admitted", async () => {
		const admitted = await send(draftOf()).admitted;
		expect(admitted).toMatchObject({ appId: "shop", userId: "owner", model: "small", timeoutMs: 120_000 });
	});

	test.each(faults)("step $step: $name", async (fault) => {
		const draft = draftOf();
		fault.spoil(draft);
		await expectFault(draft, fault);
	});

	test.each(pairsOf(faults).map(([first, second]) => ({ first, second })))(
		"R4-31: step $first.step wins over step $second.step",
		async ({ first, second }) => {
			const draft = draftOf();
			second.spoil(draft);
			first.spoil(draft);
			await expectFault(draft, first);
		},
	);
});

describe("what else each step refuses", () => {
	const cases = [
		fault(
			1,
			"an unknown role",
			ENVELOPE,
			asking({ kind: "text", messages: [{ role: "system" as "user", text: "a" }] }),
		),
		fault(
			1,
			"an answer as the last message",
			ENVELOPE,
			asking({ kind: "text", messages: [{ role: "assistant", text: "a" }] }),
		),
		fault(1, "a longer time than there is", ENVELOPE, ({ head }) => (head.timeoutMs = 120_001)),
		fault(1, "a huge value in metadata", ENVELOPE, says("provider-api-key", "k".repeat(4097))),
		fault(2, "another user than the token's", FORBIDDEN, (draft) => {
			draft.metadata["x-nexus-user-token"] = "user:ann";
			draft.head.userId = "bob";
		}),
		fault(3, "another application than the token's", FORBIDDEN, (draft) => (draft.principal = appPrincipal("desk"))),
		fault(4, "neither connector nor key", [INVALID, "AI_CONNECTOR_ID_REQUIRED"], ({ head }) => delete head.connectorId),
		fault(4, "credentials and a connector", CONFLICT, ({ metadata }) => Object.assign(metadata, KEY)),
		fault(4, "a provider without a usual address", CREDENTIAL_MISSING, (draft) => {
			delete draft.head.connectorId;
			draft.metadata = { ...KEY, "x-nexus-provider-type": "openai-compatible" };
		}),
		fault(6, "the connector of another application", NO_CONNECTOR, having({ appId: "desk" })),
		fault(6, "a connector without a key", [FAILED_PRECONDITION, "AI_CONNECTOR_CREDENTIAL_MISSING"], (draft) => {
			draft.connector.id = "keyless";
			draft.head.connectorId = "keyless";
		}),
		fault(
			7,
			"a name that does not resolve",
			[UNAVAILABLE, "AI_ENDPOINT_UNRESOLVED"],
			having({ endpoint: "https://nowhere.example" }),
		),
		fault(8, "a key over plain text from elsewhere", FORBIDDEN, (draft) => {
			Object.assign(draft, { head: { appId: "shop", userId: "", model: "small" }, metadata: { ...KEY } });
			draft.principal = { ...OWNER, isPrivate: false };
		}),
		fault(
			9,
			"a kind of work that the connector does not do",
			[NOT_FOUND, "AI_SCENARIO_UNSUPPORTED"],
			having({ kinds: ["speech"] }),
		),
		fault(9, "no model at all", NO_MODEL, having({ defaultModel: "" })),
	];

	test.each(cases)("step $step: $name", async (refused) => {
		const draft = managedDraft();
		refused.spoil(draft);
		await expectFault(draft, refused);
	});

	test("Z26: a job cannot keep credentials of its request", async () => {
		const { scenarios } = rig(saying());
		const { head, spec, metadata } = inlineDraft();
		const request = { ...requestOf({ head, spec, durable: true }, metadata) };
		const refused = { code: "precondition", reason: "AI_REQUEST_CREDENTIAL_CONFLICT" };
		await expect(scenarios.admit(request, OWNER)).rejects.toMatchObject(refused);
	});
});

describe("who calls", () => {
	test("Z10: the token's subject is the user", async () => {
		const draft = managedDraft();
		draft.metadata["x-nexus-user-token"] = "user:ann";
		expect(await send(draft).admitted).toMatchObject({ userId: "ann" });
		draft.head.userId = "ann";
		expect(await send(draft).admitted).toMatchObject({ userId: "ann" });
	});

	test("Z25: an application's token names it", async () => {
		const draft = { ...managedDraft(), principal: appPrincipal("shop") };
		draft.head.appId = "";
		expect(await send(draft).admitted).toMatchObject({ appId: "shop" });
	});

	test("the model that is named is taken, and the time", async () => {
		const draft = managedDraft();
		Object.assign(draft.head, { model: "large", timeoutMs: 5000 });
		expect(await send(draft).admitted).toMatchObject({ model: "large", timeoutMs: 5000 });
	});

	test("a node of a workflow may ask for more time than a call with a waiting client", async () => {
		const draft = managedDraft();
		Object.assign(draft.head, { timeoutMs: 3_600_000 });
		expect(await send(draft, { timeoutMsMax: 3_600_000 }).admitted).toMatchObject({ timeoutMs: 3_600_000 });
	});
});

const inlineType = fault(4, "an unknown provider", ENVELOPE, says("provider-type", "nobody"));
const inlineQuery = fault(
	4,
	"an endpoint with a query",
	ENVELOPE,
	says("provider-endpoint", "https://private.example/?sk-secret"),
);
test.each([inlineType, inlineQuery])(
	"R4-31: $name is reported before faults of the endpoint and the model",
	async (fault) => {
		const draft = inlineDraft();
		inlineEndpoint.spoil(draft);
		inlineModel.spoil(draft);
		fault.spoil(draft);
		await expectFault(draft, fault);
	},
);

test("credentials of an application's request say whose they are; the owner's do not", async () => {
	const { scenarios } = rig(saying());
	const { head, spec, metadata } = inlineDraft();
	const sourceFor = async (principal: Principal) =>
		(await scenarios.admit(requestOf({ head, spec }, metadata), principal)).source;
	expect(await sourceFor(appPrincipal("shop"))).toMatchObject({ inline: { app: "shop" } });
	expect(await sourceFor(OWNER)).not.toMatchObject({ inline: { app: expect.anything() } });
});

test("I11: names in a request have an end", async () => {
	const draft = managedDraft();
	draft.spec = { kind: "speech", text: "hello", voice: "x".repeat(201) };
	await expectFault(draft, parse);
});

test("Z26: a key of the request is in no error, log or record, though the provider quotes it", async () => {
	const said: unknown[] = [];
	const take = (...what: unknown[]) =>
		void said.push(
			what.map((one) =>
				JSON.stringify(one, (_key, value: unknown) =>
					value instanceof Error ? { message: value.message, cause: value.cause } : value,
				),
			),
		);
	const log = { debug: take, info: take, warn: take, error: take } as never;
	const audited: unknown[] = [];
	const play = async function* () {
		yield { type: "text" as const, delta: "so far" };
		throw new Error("401: the key sk-secret (sk-secret) is wrong", { cause: new Error("sk-secret") });
	};
	const audit = (entry: unknown) => {
		audited.push(entry);
		return { table: "idempotency", op: "forget", args: [0, 0] };
	};
	const { scenarios, frames, connectors } = rig(play, { log, audit });
	const { head, spec, metadata } = inlineDraft();
	const admitted = await scenarios.admit(requestOf({ head, spec }, metadata), OWNER);
	const started = await scenarios.start(admitted, { idempotencyKey: "k" });
	const all = JSON.stringify([await frames(started.runId), await started.outcome(), said, audited]);
	expect(connectors.inline).toEqual([{ providerType: "openai", apiKey: "sk-secret" }]);
	expect(all).toContain("[redacted]");
	expect(all).not.toContain("sk-secret");
	expect(said.length).toBeGreaterThan(0);
	expect(audited).toMatchObject([
		{
			domain: "scenarios",
			operation: "started",
			caller: OWNER.address,
			appId: "shop",
			payload: { connector_id: "inline", model: "small" },
		},
		{ operation: "failed", reason: "AI_PROVIDER_FAILED" },
	]);
});

test.each([
	["is there", {}, undefined],
	["is gone", { id: "other" }, "AI_CONNECTOR_NOT_FOUND"],
	["belongs to another application now", { appId: "desk" }, "AI_CONNECTOR_NOT_FOUND"],
	["is disabled", { enabled: false }, "AI_CONNECTOR_DISABLED"],
	["has an address that may not be dialled", { endpoint: "https://private.example" }, "AI_ENDPOINT_FORBIDDEN"],
])("Z27: a stored call is admitted again before it runs, whose connector %s", async (_, connector, reason) => {
	const { scenarios } = rig(saying("hi"), { connectors: [connectorOf("main", connector)] });
	const { appId, userId, spec, model, timeoutMs } = admittedOf();
	const stored = { appId, userId, spec, model, timeoutMs, connector: { id: "main" } };
	const verdict = await scenarios.readmit(stored).then(
		({ provider }) => (provider.demo ? "demo" : undefined),
		(cause: NexusError) => cause.reason,
	);
	expect(verdict).toBe(reason);
});
