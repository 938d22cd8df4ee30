/** How the daemon is, as a feed of one state. */

import type { RuntimeHealth, RuntimeHealthFeed } from "../../services/services.ts";

/** A reader that is behind misses samples of the same status, and no other status. */
export const healthFeed = (health: RuntimeHealthFeed) => ({
	current: () => [health.current()],
	subscribe: (listener: (state: RuntimeHealth) => void) => health.subscribe(listener),
	key: ({ status }: RuntimeHealth) => status,
});
