/** The bundled platform of a channel, in the process of the test. */

import type { Platform } from "../../packages/adapter/src/kit.ts";
import type { Channel } from "../../packages/platforms/src/channels.ts";

export async function loadPlatform(channel: Channel): Promise<Platform> {
	const loaded = (await import(`../../packages/platforms/src/${channel}/${channel}.ts`)) as { platform: Platform };
	return loaded.platform;
}
