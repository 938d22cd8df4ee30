/** A cut is never an OK end, whatever the method behind the stream does (Z7, R4-80): tried with every streaming procedure that there is. */

import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectRouter, createClient, type HandlerContext } from "@connectrpc/connect";
import { expect, it, vi } from "vitest";
import { waitFor } from "../rig.ts";
import { methods, procedureOf } from "./descriptors.ts";
import { type Ended, kitForTest, readStream, statusOf } from "./kit.ts";

/** Ways a method may react to a cut: take it for its end, not notice, fail in its own way, or keep sending. */
const MANNERS = {
	async *returns({ signal }: HandlerContext) {
		yield {};
		await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
	},
	async *hangs() {
		yield {};
		await new Promise<never>(() => {});
	},
	async *fails({ signal }: HandlerContext) {
		yield {};
		await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("it was cut"))));
	},
	async *talks({ signal }: HandlerContext) {
		yield {};
		while (!signal.aborted) {
			await new Promise((resolve) => setImmediate(resolve));
			yield {};
		}
	},
} as const;
type Manner = keyof typeof MANNERS;

let manner: Manner = "returns";

vi.mock("../../../packages/daemon/src/edge/rpc/routes.ts", async (original) => {
	const { SERVICES } = await original<typeof import("../../../packages/daemon/src/edge/rpc/routes.ts")>();
	return {
		SERVICES,
		addServices(router: Pick<ConnectRouter, "service">) {
			for (const service of SERVICES) {
				const behave = (_: unknown, context: HandlerContext) => MANNERS[manner](context);
				const streams = service.methods.filter(({ methodKind }) => methodKind !== "unary");
				router.service(service, Object.fromEntries(streams.map(({ localName }) => [localName, behave])) as never);
			}
		},
	};
});

const streaming = methods.filter(({ methodKind }) => methodKind !== "unary");

async function* once(): AsyncIterable<object> {
	yield {};
	// A client that still has something to ask.
	await new Promise<never>(() => {});
}

it.each(Object.keys(MANNERS) as Manner[])(
	"P8.3, Z7: every stream whose method %s ends with CANCELLED when the daemon stops",
	async (how) => {
		manner = how;
		const kit = await kitForTest();
		const open = (method: DescMethod, protocol: "grpc" | "connect", seen: () => void) => {
			const client = createClient(method.parent, kit.transport(protocol)) as unknown as Record<
				string,
				(request: object) => AsyncIterable<object>
			>;
			return readStream(client[method.localName]!(method.methodKind === "bidi_streaming" ? once() : {}), seen);
		};
		const ends = new Map<string, Promise<Ended<object>>>();
		const begun = new Set<string>();
		for (const method of streaming) {
			for (const protocol of ["grpc", "connect"] as const) {
				// HTTP/1.1 has no dialogue.
				if (protocol === "connect" && method.methodKind === "bidi_streaming") continue;
				const name = `${procedureOf(method)} over ${protocol}`;
				ends.set(
					name,
					open(method, protocol, () => void begun.add(name)),
				);
			}
		}
		await waitFor(() => begun.size === ends.size);
		expect(kit.rig.edge.stats().grpcStreams).toBe(ends.size);
		await kit.rig.edge.close(700);
		for (const [name, ended] of ends) {
			expect([name, statusOf((await ended).error)]).toEqual([
				name,
				{ code: "Canceled", reason: "REASON_CODE_STOPPING" },
			]);
		}
	},
);
