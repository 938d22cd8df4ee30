/** On whose behalf a service is called: the owner, who may name any application, or one application by its own token. */

import { NexusError } from "@nexus-stream/protocol";
import type { Principal } from "../../edge/edge.ts";

export type { Principal };

/** The owner of what is made when the owner names no application. */
export const OWNER_APP = "owner";

const APP_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Throws `invalid` for what no application can be called. */
export function checkedAppId(text: string): string {
	if (APP_ID.test(text)) return text;
	throw new NexusError("invalid", "app_id: 1 to 64 letters, digits and . _ - beginning with a letter or digit");
}

/** The application that a request is for. Another one's is forbidden to an application. */
export function appOf(principal: Principal, claimed: string): string {
	const { appId } = principal;
	if (claimed !== "") checkedAppId(claimed);
	if (appId === undefined) return claimed === "" ? OWNER_APP : claimed;
	if (claimed === "" || claimed === appId) return appId;
	throw notYours(appId, claimed);
}

const notYours = (appId: string, claimed: string): NexusError =>
	new NexusError("forbidden", `this token belongs to the application ${appId}, not to ${claimed}`);

/** The application whose work a list shows; undefined: everybody's, for the owner. */
export function appToList({ owner, appId }: Principal, claimed: string | undefined): string | undefined {
	if (claimed !== undefined) checkedAppId(claimed);
	if (owner || claimed === undefined || claimed === appId) return claimed ?? appId;
	throw notYours(appId!, claimed);
}

/** Whether something of that application is there for the caller; if not, it is as if it were not there at all. */
export const seesApp = (principal: Principal, appId: string): boolean => principal.owner || principal.appId === appId;

/** For what only the owner may do. */
export function requireOwner(principal: Principal): Principal {
	if (principal.owner) return principal;
	throw new NexusError("forbidden", "an application's token may not do this: use the owner's");
}
