/** The files of artifacts: named by their ids only, whole under that name, and `.part` until then. */

import { createHash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { access, type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { NexusError } from "@nexus-stream/protocol";

const PART = ".part";
const FILE = /^(art_[0-9a-f]{32})(\.part)?$/;

export type ArtifactFiles = ReturnType<typeof artifactFiles>;

export function artifactFiles(dir: string) {
	const whole = (id: string) => join(dir, id);
	const part = (id: string) => join(dir, id + PART);
	let made: Promise<unknown> | undefined;
	const folder = () => (made ??= mkdir(dir, { recursive: true, mode: 0o700 }));
	return {
		/** How much of an unfinished one is there. */
		received: async (id: string) => (await stat(part(id)).catch(absent))?.size ?? 0,
		/** Writes a piece of an unfinished one; returns how much is there then. */
		async write(id: string, offset: number, chunk: Uint8Array) {
			await folder();
			return writeAt(part(id), offset, chunk);
		},
		/** SHA-256 of an unfinished file, in hex. */
		async sum(id: string) {
			const hash = createHash("sha256");
			for await (const chunk of createReadStream(part(id))) hash.update(chunk as Uint8Array);
			return hash.digest("hex");
		},
		/** Makes it whole: its bytes are on the disk before it has its name. */
		async finish(id: string) {
			await using(await open(part(id), "r+"), (file) => file.sync());
			await rename(part(id), whole(id));
			await using(await open(dir, "r"), (file) => file.sync());
		},
		/** Makes a whole file unfinished again, because its row was not marked complete. */
		async reopen(id: string) {
			const there = await access(whole(id)).then(() => true, absent);
			if (there) await rename(whole(id), part(id));
		},
		async read(id: string, offset: number, length: number): Promise<Uint8Array> {
			const chunk = Buffer.alloc(length);
			const { bytesRead } = await using(await opened(whole(id), id), (file) => file.read(chunk, 0, length, offset));
			if (bytesRead < length) throw lost(id);
			return chunk;
		},
		async *stream(id: string, from: number, to: number) {
			if (to <= from) return;
			const file = await opened(whole(id), id);
			try {
				yield* file.createReadStream({ start: from, end: to - 1, autoClose: false }) as AsyncIterable<Uint8Array>;
			} finally {
				await file.close();
			}
		},
		async remove(id: string) {
			await rm(whole(id), { force: true });
			await rm(part(id), { force: true });
		},
		async ids() {
			const names = (await readdir(dir).catch(absent)) ?? [];
			return new Set(names.flatMap((name) => FILE.exec(name)?.[1] ?? []));
		},
	};
}

async function writeAt(path: string, offset: number, chunk: Uint8Array): Promise<number> {
	return using(await open(path, constants.O_RDWR | constants.O_CREAT, 0o600), async (file) => {
		try {
			for (let done = 0; done < chunk.length; ) {
				const { bytesWritten } = await file.write(chunk, done, chunk.length - done, offset + done);
				done += bytesWritten;
			}
		} catch (cause) {
			// The part that was written before the disk was full is cut off: the caller sends the whole piece again.
			await file.truncate(offset).catch(() => {});
			throw diskFailure(cause);
		}
		return offset + chunk.length;
	});
}

async function using<T>(file: FileHandle, work: (file: FileHandle) => Promise<T>): Promise<T> {
	try {
		return await work(file);
	} finally {
		await file.close();
	}
}

const opened = (path: string, id: string): Promise<FileHandle> =>
	open(path, "r").catch((cause: unknown) => {
		absent(cause);
		throw lost(id);
	});

const lost = (id: string) => new NexusError("data_loss", `the file of the artifact ${id} is missing or too short`);

function absent(cause: unknown): undefined {
	if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
	return undefined;
}

export function diskFailure(cause: unknown): unknown {
	const { code } = cause as NodeJS.ErrnoException;
	if (code !== "ENOSPC" && code !== "EDQUOT") return cause;
	return new NexusError("unavailable", "the disk is full: free some space, then send the piece again", { cause });
}
