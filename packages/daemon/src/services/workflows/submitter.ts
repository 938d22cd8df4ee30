/** Finds the user on whose behalf a workflow is submitted, from the request and its metadata. */

import { NexusError } from "@nexus-stream/protocol";
import { metadataOf } from "../scenarios/metadata.ts";
import type { VerifyUserToken } from "../scenarios/user-token.ts";
import type { NewWorkflow } from "./port.ts";

/** The user of a request that names none. */
const OWNER_USER = "owner";

/** Credentials of a request are refused: its nodes run later, perhaps after a restart (Z26). */
export async function userOf({ userId, metadata }: NewWorkflow, verifyUser: VerifyUserToken): Promise<string> {
	const { userToken, keySource = "managed", ...credentials } = metadataOf(metadata ?? (() => undefined));
	if (keySource !== "managed" || Object.keys(credentials).length > 0)
		throw new NexusError(
			"precondition",
			"credentials of a request cannot survive a restart: create a connector, and name it in the nodes",
			{ reason: "AI_REQUEST_CREDENTIAL_CONFLICT" },
		);
	if (userToken === undefined) return userId === "" ? OWNER_USER : userId;
	const subject = await verifyUser(userToken);
	if (userId !== "" && userId !== subject)
		throw new NexusError("forbidden", "subject_user_id is not the subject of the user token");
	return subject;
}
