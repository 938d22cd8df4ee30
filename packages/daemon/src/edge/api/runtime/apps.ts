/** The handlers about applications, and how they are told as JSON. */

import { type AppJson, NexusError } from "@nexus-stream/protocol";
import type { AppInfo } from "../../../services/apps/port.ts";
import { type StoredBytes, storedTotal } from "../../../services/kit/quota.ts";
import { defined } from "../../../std/defined.ts";
import { principalOfCaller } from "../../http/gate.ts";
import type { Handlers } from "../../http/handler.ts";
import type { EdgeDeps } from "../../port.ts";

export function appHandlers({ apps, services }: Pick<EdgeDeps, "apps" | "services">) {
	const needed = () => {
		if (apps) return apps;
		throw new NexusError("not_found", "this daemon has no applications");
	};
	const view = async (app: AppInfo) =>
		appView(app, await services?.quota.usage(app.id), services?.quota.bytesPerAppMax);
	return {
		async listApps() {
			return { apps: await Promise.all((apps?.list() ?? []).map(view)) };
		},
		async addApp({ body: { app_id: id, name } }, { caller }) {
			const { app, token } = await needed().add(defined({ id, name }), principalOfCaller(caller));
			return { app: await view(app), token };
		},
		async clearApp({ params: { app: id } }, { caller }) {
			if (!services) throw new NexusError("not_found", "this daemon has no applications");
			await services.clearApp(id, principalOfCaller(caller));
			const { quota } = services;
			const stored = await quota.usage(id);
			return { app_id: id, stored_bytes: storedTotal(stored), stored_bytes_max: quota.bytesPerAppMax };
		},
		async removeApp({ params }, { caller }) {
			await needed().remove(params.app, principalOfCaller(caller));
			return { removed: true };
		},
	} satisfies Partial<Handlers>;
}

const appView = (
	{ id, name, createdAt, revokedAt }: AppInfo,
	stored: StoredBytes | undefined,
	bytesMax: number | undefined,
): AppJson =>
	defined({
		app_id: id,
		name,
		created_at: createdAt,
		removed_at: revokedAt,
		stored_bytes: stored && storedTotal(stored),
		stored_bytes_max: bytesMax,
		stored,
	});
