/** Every platform has the same files, so that knowing one platform is knowing all. */

import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { CHANNELS } from "../../packages/platforms/src/channels.ts";
import { ROOT } from "./files.ts";

const FOLDER = `${ROOT}/packages/platforms/src`;
const REQUIRED = ["README.md", "session.ts", "inbound.ts"];
/** A platform without such a file has nothing of the kind. */
const OPTIONAL = ["format.ts", "api.ts", "faults.ts", "pace.ts", "buttons.ts"];
/** Files that only this platform needs. */
const OWN: Partial<Record<(typeof CHANNELS)[number], readonly string[]>> = {
	discord: ["gateway.ts", "recognise.ts"],
	gmail: ["compose.ts", "mailbox.ts", "text.ts"],
	imessage: ["backend.ts", "bluebubbles.ts", "imsg.ts", "rpc.ts"],
	nostr: ["events.ts", "inbox.ts", "keys.ts", "pool.ts", "private.ts", "publisher.ts", "relay.ts", "streams.ts"],
	slack: ["files.ts", "lookup.ts", "socket.ts", "streams.ts", "writer.ts"],
	telegram: ["poll.ts"],
};

it.each(CHANNELS)("the files of %s have the names of all platforms, or are listed here", (channel) => {
	const files = readdirSync(`${FOLDER}/${channel}`);
	const required = [...REQUIRED, `${channel}.ts`];
	const known = [...required, ...OPTIONAL, ...(OWN[channel] ?? [])];
	expect(required.filter((name) => !files.includes(name))).toEqual([]);
	expect(files.filter((name) => !known.includes(name))).toEqual([]);
	expect((OWN[channel] ?? []).filter((name) => !files.includes(name))).toEqual([]);
});
