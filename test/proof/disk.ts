/** A separate small disk that a test can fill. It needs the right to mount one. */

import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface SmallDisk {
	readonly path: string;
	/** False: it may not be mounted here. */
	readonly mounted: boolean;
	/** But for so much. */
	fill(roomBytes?: number): void;
	/** Makes room again. */
	free(): void;
	unmount(): void;
}

export function smallDisk(folder: string, megabytes: number): SmallDisk {
	const path = join(folder, "disk");
	mkdirSync(path);
	const mounted =
		process.platform === "linux" &&
		spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path]).status === 0;
	const ballast = join(path, "ballast");
	return {
		path,
		mounted,
		/** Where a daemon writes at the same time, how much fits is not known. */
		fill(roomBytes = 0) {
			const { bavail, bsize } = statfsSync(path);
			try {
				writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - roomBytes)));
			} catch (cause) {
				if ((cause as NodeJS.ErrnoException).code !== "ENOSPC") throw cause;
			}
		},
		free: () => rmSync(ballast, { force: true }),
		unmount() {
			if (mounted) spawnSync("umount", [path]);
		},
	};
}
