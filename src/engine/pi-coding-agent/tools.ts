/** pi's own tools, kept from what is the daemon's: its data, its configuration and its environment. */

import { constants } from "node:fs";
import { access, mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import type { ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { EngineHouse } from "../entry.ts";
import type { EngineRequest } from "../port.ts";
import {
	commandEnvironment,
	isInside,
	isOneOf,
	realPathTo,
	refuseProtected,
	type ToolsConfig,
} from "../tools/tools.ts";

/** Left out where there is no daemon around it. */
export type CodingHouse = Pick<EngineHouse, "dataDir" | "protectedFiles" | "secretFiles" | "config">;

type CodingAgent = typeof import("@earendil-works/pi-coding-agent");

export function codingTools(
	pi: CodingAgent,
	cwd: string,
	request: Pick<EngineRequest, "owner">,
	house: CodingHouse | undefined,
): ToolDefinition[] {
	const { readable, writable } = filesOf(cwd, request, house);
	const reading = {
		readFile: async (file: string) => readFile(await readable(file)),
		access: async (file: string) => access(await readable(file), constants.R_OK),
		detectImageMimeType: async (file: string) => pi.detectSupportedImageMimeTypeFromFile(await readable(file)),
	};
	const writing = async (file: string, text: string) => writeFile(await writable(file), text, "utf8");
	const editing = {
		readFile: reading.readFile,
		writeFile: writing,
		access: async (file: string) => access(await writable(file), constants.R_OK | constants.W_OK),
	};
	const making = {
		writeFile: writing,
		mkdir: async (folder: string) => void (await mkdir(await writable(folder), { recursive: true })),
	};
	const envNames = (house?.config.tools as ToolsConfig | undefined)?.bash?.env ?? [];
	const definitions = [
		pi.createReadToolDefinition(cwd, { operations: reading }),
		pi.createBashToolDefinition(cwd, {
			exposeSessionEnvironment: false,
			spawnHook: (spawned) => ({ ...spawned, env: commandEnvironment(spawned.env, envNames) }),
		}),
		pi.createEditToolDefinition(cwd, { operations: editing }),
		pi.createWriteToolDefinition(cwd, { operations: making }),
	];
	// Each has its own parameter type; the session validates before it calls.
	return definitions as unknown as ToolDefinition[];
}

/** The real path of a file, or a refusal in words for the model. */
function filesOf(cwd: string, { owner }: Pick<EngineRequest, "owner">, house: CodingHouse | undefined) {
	const { dataDir, secretFiles = [], protectedFiles = [] } = house ?? {};
	const readable = async (file: string): Promise<string> => {
		const real = await realPathTo(file);
		// Whoever may read everything may read what opens the daemon's own door.
		if (dataDir !== undefined && isInside(await realPathTo(dataDir), real))
			throw new Error(`"${file}" is the daemon's own and cannot be used`);
		if (await isOneOf(secretFiles, real)) throw new Error(`"${file}" may hold secrets and cannot be used`);
		if (owner !== true && !isInside(await realpath(cwd), real))
			throw new Error(`"${file}" is outside the folder that may be used in this run`);
		return real;
	};
	const writable = async (file: string): Promise<string> => {
		const real = await readable(file);
		await refuseProtected(protectedFiles, file, real, undefined);
		return real;
	};
	return { readable, writable };
}
