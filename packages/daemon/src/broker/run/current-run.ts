/** Which run the code that runs now belongs to: an error that nobody handles otherwise says nothing about whose it is. */

import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<string>();

/** Everything that `work` sets off, however much later, belongs to the run. */
export const asRun = <T>(runId: string, work: () => T): T => current.run(runId, work);

/** Undefined outside of every run. */
export const currentRun = (): string | undefined => current.getStore();
