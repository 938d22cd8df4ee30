/** The daemon's state alone, out of the samples of how it is: for those who ask only whether it serves. */

import type { HealthFeed } from "../../edge/edge.ts";
import type { RuntimeHealthFeed } from "../../services/health/port.ts";

/** A store that refuses commits says nothing by itself: the samples find out, while somebody listens. */
export const stateFeed = (health: RuntimeHealthFeed): HealthFeed => ({
	state: () => health.current().status,
	subscribe(listener) {
		let last = health.current().status;
		return health.subscribe(({ status }) => {
			if (status === last) return;
			last = status;
			listener(status);
		});
	},
});
