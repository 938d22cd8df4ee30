/** The handlers about applications, and how they are told as JSON. */

import { type AppJson, NexusError } from "../protocol/protocol.ts";
import type { AppInfo } from "../services/services.ts";
import { principalOfCaller } from "./gate.ts";
import type { Handlers } from "./handler.ts";
import type { EdgeDeps } from "./port.ts";
import { defined } from "./present.ts";

export function appHandlers({ apps }: Pick<EdgeDeps, "apps">) {
	const needed = () => {
		if (apps) return apps;
		throw new NexusError("not_found", "this daemon has no applications");
	};
	return {
		listApps: () => ({ apps: (apps?.list() ?? []).map(appView) }),
		async addApp({ body: { app_id: id, name } }, { caller }) {
			const { app, token } = await needed().add(defined({ id, name }), principalOfCaller(caller));
			return { app: appView(app), token };
		},
		async removeApp({ params }, { caller }) {
			await needed().remove(params.app, principalOfCaller(caller));
			return { removed: true };
		},
	} satisfies Partial<Handlers>;
}

const appView = ({ id, name, createdAt, revokedAt }: AppInfo): AppJson =>
	defined({ app_id: id, name, created_at: createdAt, removed_at: revokedAt });
