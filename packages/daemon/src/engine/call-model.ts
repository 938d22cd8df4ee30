/** Asks a model without an agent, by the library that one of the engines brings along; the first call loads it. */

import { own } from "@nexus-stream/protocol/own";
import { loadOnce } from "../std/load-once.ts";
import { ENGINES } from "./engines.ts";
import type { CallModel } from "./model.ts";

const load = loadOnce(async () => await ENGINES.find(({ caller }) => caller)!.caller!());

export const callModel: CallModel = async function* (target, request) {
	yield* (await load())(target, request);
};

/** A provider's model when nobody names one. */
export const usualModel = (provider: string): string | undefined =>
	ENGINES.map(({ usualModels }) => own(usualModels, provider)).find((model) => model !== undefined);
