/** Calls a model without an agent, with the library of one of the engines; the first call loads it. */

import { own } from "@nexus-stream/protocol/own";
import { loadOnce } from "../std/load-once.ts";
import { ENGINES } from "./engines.ts";
import type { CallModel } from "./model.ts";

const load = loadOnce(async () => await ENGINES.find(({ caller }) => caller)!.caller!());

export const callModel: CallModel = async function* (target, request) {
	yield* (await load())(target, request);
};

/** A provider's default model. */
export const usualModel = (provider: string): string | undefined =>
	ENGINES.map(({ usualModels }) => own(usualModels, provider)).find((model) => model !== undefined);
