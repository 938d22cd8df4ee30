/** Who the agent is, for people who look it up: its profile, and the relays where it reads private messages. */

import { createHash } from "node:crypto";
import type { Settings, Tools } from "@nexus-stream/adapter";
import type { EventTemplate } from "nostr-tools/core";
import { INBOX_RELAYS, PROFILE } from "./events.ts";

const FIELDS = ["name", "about", "picture", "nip05"] as const;
const PUBLISHED = "profile";

export type ProfileSettings = Settings<(typeof FIELDS)[number]>;

type ProfileEvent = Omit<EventTemplate, "created_at">;

/** Without a name or the like, a profile that a person has published stays as it is. */
function profileDrafts(settings: ProfileSettings, relays: readonly string[]): ProfileEvent[] {
	const given = FIELDS.flatMap((name) => (settings[name] === "" ? [] : [[name, settings[name]]]));
	const content = JSON.stringify({ ...Object.fromEntries(given), bot: true });
	const inbox = { kind: INBOX_RELAYS, tags: relays.map((url) => ["relay", url]), content: "" };
	return given.length === 0 ? [inbox] : [inbox, { kind: PROFILE, tags: [], content }];
}

export interface ProfileOptions {
	settings: ProfileSettings;
	relays: readonly string[];
	publish(event: EventTemplate): Promise<void>;
	tools: Tools;
}

/** Published again only when it has changed. */
export async function publishProfile({ settings, relays, publish, tools }: ProfileOptions): Promise<void> {
	const drafts = profileDrafts(settings, relays);
	const digest = createHash("sha256").update(JSON.stringify(drafts)).digest("hex");
	if (tools.state.get(PUBLISHED) === digest) return;
	const created_at = Math.floor(tools.clock.now() / 1000);
	for (const draft of drafts) await publish({ ...draft, created_at });
	tools.state.set(PUBLISHED, digest);
}
