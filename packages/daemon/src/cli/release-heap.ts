/** Loading a program takes twice the heap that running it needs; this gives the rest back to the machine, once. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const LOOK_MS = 500;

/** Waits for a quiet moment: the collection stops the process for some 30 ms. */
export function releaseHeap(isQuiet: () => boolean): void {
	const timer = setInterval(() => {
		if (!isQuiet()) return;
		clearInterval(timer);
		setFlagsFromString("--expose-gc");
		const collect = runInNewContext("gc") as (options: object) => void;
		collect({ type: "major", execution: "sync", flavor: "last-resort" });
	}, LOOK_MS);
	timer.unref();
}
