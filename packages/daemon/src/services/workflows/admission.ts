/** Checks of a workflow before it is accepted: its submitter, its scripts and its connectors. */

import { compileFunction } from "node:vm";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import type { ConnectorInfo } from "../connectors/port.ts";
import { metadataOf, userOf, type VerifyUserToken } from "../scenarios/metadata.ts";
import { pathsIn } from "./nodes/expressions.ts";
import { invalid, type Plan } from "./plan.ts";
import type { NewWorkflow } from "./port.ts";

/** Credentials of a request are refused: its nodes run later, perhaps after a restart (Z26). */
export async function submitterOf({ userId, metadata }: NewWorkflow, verifyUser: VerifyUserToken): Promise<string> {
	const { userToken, keySource = "managed", ...credentials } = metadataOf(metadata ?? (() => undefined));
	if (keySource !== "managed" || Object.keys(credentials).length > 0)
		throw new NexusError(
			"precondition",
			"credentials of a request cannot survive a restart: create a connector, and name it in the nodes",
			{ reason: "AI_REQUEST_CREDENTIAL_CONFLICT" },
		);
	return userOf(userId, { userToken }, verifyUser);
}

/** Nothing of it runs here: it is only read, by the daemon's own parser, which knows all that a script's does. */
export function checkScripts({ nodes }: Plan): void {
	for (const { id, kind, config } of nodes) {
		if (kind !== "TRANSFORM_SCRIPT") continue;
		try {
			compileFunction(`"use strict";\n${config.code}`, ["inputs"], { filename: "script.js", lineOffset: -1 });
		} catch (cause) {
			throw invalid(`node ${id}: config.code: ${lineOf(cause)}${wordsOf(cause)}`);
		}
	}
}

function lineOf(cause: unknown): string {
	const line = cause instanceof Error ? /^script\.js:(\d+)/.exec(cause.stack ?? "")?.[1] : undefined;
	return line === undefined ? "" : `line ${line}: `;
}

type FindConnector = (id: string) => Promise<ConnectorInfo | undefined>;

/** Skips a connector that is named by a placeholder: it is known only when its node runs. */
export async function checkConnectors({ nodes }: Plan, find: FindConnector, appId: string): Promise<void> {
	const known = new Set<string>();
	for (const { id, config } of nodes) {
		const { connector_id: connector } = config as { connector_id?: string };
		if (connector === undefined || known.has(connector) || pathsIn(connector).length > 0) continue;
		const found = await find(connector);
		if (!found || (found.appId !== undefined && found.appId !== appId))
			throw invalid(`node ${id}: there is no connector ${connector}; create it, or correct connector_id`);
		known.add(connector);
	}
}
