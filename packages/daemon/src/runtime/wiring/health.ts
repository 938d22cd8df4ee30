/** The daemon's state alone, out of the samples of how it is: for those who ask only whether it serves. */

import type { HealthFeed } from "../../edge/edge.ts";
import type { RuntimeHealthFeed } from "../../services/health/port.ts";

/** A store that refuses commits raises no event: samples detect it, and they are taken only while a listener is subscribed. */
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
