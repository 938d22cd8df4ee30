/** The system's clock and no log, for parts whose test looks at neither. */

import { systemClock } from "../packages/protocol/src/clock.ts";
import { silentLog } from "../packages/protocol/src/log.ts";

export const quiet = { clock: systemClock, log: silentLog };
