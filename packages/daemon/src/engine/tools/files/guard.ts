/** The files of an agent that brings its own file tools: it may go where its user may, but not into what is the daemon's, and with guests not outside its folder. */

import { constants } from "node:fs";
import { mkdir, open, realpath, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { isInside, isOneOf, openedPathOf, realPathTo, refuseProtected } from "./contained-path.ts";

export interface GuardOptions {
	root: string;
	/** The owner alone has words in this run, as far as it has come. */
	isOwner(): boolean;
	dataDir?: string | undefined;
	protectedFiles?: readonly string[] | undefined;
	secretFiles?: readonly string[] | undefined;
}

export type GuardedFiles = ReturnType<typeof guardedFiles>;

/** In it are the environment and the open files of this process. */
const PROCESSES = "/proc";

/** By absolute paths, as an agent's own tools have them. */
export function guardedFiles(options: GuardOptions) {
	const { protectedFiles = [], secretFiles = [] } = options;
	const refuse = async (asked: string, real: string) => {
		const { root, dataDir, isOwner } = options;
		const isDaemons = dataDir !== undefined && isInside(await realPathTo(dataDir), real);
		if (isDaemons || isInside(PROCESSES, real)) throw new Error(`"${asked}" belongs to the daemon and cannot be used`);
		if (!isOwner() && !isInside(await realpath(root), real))
			throw new Error(`"${asked}" is outside the folder that may be used`);
	};
	/** Open first, then look at what was opened: the path may lead elsewhere by now. */
	const opened = async (asked: string) => {
		await refuse(asked, await realpath(asked));
		const file = await open(asked, constants.O_RDONLY | constants.O_NONBLOCK);
		try {
			const place = await openedPathOf(file, await realpath(asked));
			if (place === undefined) throw new Error(`"${asked}" was moved while it was read`);
			await refuse(asked, place);
			if (await isOneOf(secretFiles, place, await file.stat({ bigint: true })))
				throw new Error(`"${asked}" may hold secrets and cannot be read`);
			return file;
		} catch (cause) {
			await file.close();
			throw cause;
		}
	};
	return {
		async readFile(asked: string): Promise<Buffer> {
			await using file = await opened(asked);
			return await file.readFile();
		},
		/** Rejects when it cannot be read. */
		async access(asked: string): Promise<void> {
			await using _file = await opened(asked);
		},
		async writeFile(asked: string, content: string): Promise<void> {
			const real = await realPathTo(asked);
			await refuse(asked, real);
			const found = await stat(real, { bigint: true }).catch(() => undefined);
			await refuseProtected(protectedFiles, asked, real, found);
			await writeFile(real, content);
		},
		async mkdir(asked: string): Promise<void> {
			await refuse(asked, await realPathTo(path.resolve(asked)));
			await mkdir(asked, { recursive: true });
		},
	};
}
