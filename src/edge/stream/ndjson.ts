/** The records as they are, one a line (PROTOCOL P6.7). */

import type { Dialect } from "./dialect.ts";

export const NDJSON: Dialect = {
	headers: { "Content-Type": "application/x-ndjson" },
	shared: true,
	open: () => ({ text: ({ text }) => `${text}\n` }),
};
