/** The shapes of the API about applications. */

import type * as wire from "@nexus-stream/protocol";
import { z } from "zod";
import { component, type Fields, time } from "../schema.ts";

export const appId = z
	.string()
	.regex(
		/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
		"must be 1 to 64 letters, digits and . _ - beginning with a letter or digit",
	)
	.describe("1 to 64 letters, digits and . _ - beginning with a letter or digit; not `owner`.");

export const appParams = z.object({ app: appId });

const bytes = z.int().min(0);
const Stored = z.object({
	jobs: bytes,
	workflows: bytes,
	logs: bytes,
	artifacts: bytes,
	messages: bytes,
} satisfies Fields<wire.AppStoredJson>);

const AppView = component(
	"App",
	z.object({
		app_id: appId,
		name: z.string(),
		created_at: time,
		removed_at: time.exactOptional().describe("Since when its token is worth nothing."),
		stored_bytes: bytes.exactOptional().describe("Everything that is stored for it."),
		stored_bytes_max: bytes.exactOptional().describe("What it may store; more is refused (`apps.bytesPerAppMax`)."),
		stored: Stored.exactOptional().describe("What `stored_bytes` is made of."),
	} satisfies Fields<wire.AppJson>),
);
export const AppList = component("AppList", z.object({ apps: z.array(AppView) } satisfies Fields<wire.AppListJson>));
export const AppRequest = component(
	"AppRequest",
	z.object({
		app_id: appId,
		name: z.string().min(1).max(200).exactOptional().describe("For people; the id when left out."),
	} satisfies Fields<wire.AppRequest>),
);
export const AppAdded = component(
	"AppAdded",
	z.object({
		app: AppView,
		token: z.string().describe("Told once: only its hash is kept."),
	} satisfies Fields<wire.AppAddedJson>),
);
export const AppCleared = component(
	"AppCleared",
	z.object({
		app_id: appId,
		stored_bytes: bytes.describe("What is still stored for it."),
		stored_bytes_max: bytes,
	} satisfies Fields<wire.AppClearedJson>),
);
export const AppRemoved = component(
	"AppRemoved",
	z.object({ removed: z.literal(true) } satisfies Fields<wire.AppRemovedJson>),
);
