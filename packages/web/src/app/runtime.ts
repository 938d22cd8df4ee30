/** The runtime contract as the page uses it: over its own origin, with the cookie of the sign-in. */

import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Runtime } from "@nexus-stream/client/runtime";
import { NexusError } from "@nexus-stream/protocol";

const UNREACHABLE = "The daemon cannot be reached.";

let loading: Promise<Runtime> | undefined;

/** The first page that needs it loads it: most of what it is made of no chat needs. */
export function loadRuntime(): Promise<Runtime> {
	loading ??= load().catch((cause: unknown) => {
		loading = undefined;
		throw new NexusError("unavailable", UNREACHABLE, { cause });
	});
	return loading;
}

async function load(): Promise<Runtime> {
	const { createRuntime, nexusErrorOf, ReasonCode, reasonCodeOf } = await import("@nexus-stream/client/runtime");
	return createRuntime({
		reword(cause) {
			const error = nexusErrorOf(cause);
			// The daemon words its errors for the page; all others are of the network between.
			if (reasonCodeOf(cause) !== ReasonCode.UNSPECIFIED) return error;
			const words = error.code === "unavailable" ? UNREACHABLE : "Something other than the daemon answered.";
			return new NexusError(error.code, words, { cause });
		},
	});
}

export const msOf = (time: Timestamp | undefined): number | undefined => (time ? timestampMs(time) : undefined);

/** The name of an enum's value in lower case, for styles. */
export const nameOf = (values: Readonly<Record<string, number>>, value: number): string =>
	Object.entries(values)
		.find(([, each]) => each === value)?.[0]
		.toLowerCase() ?? "";
