/** The records as they are, one a line (PROTOCOL P6.7). */

import type { StreamFormat } from "./dialect.ts";

export const NDJSON: StreamFormat = {
	headers: { "Content-Type": "application/x-ndjson" },
	shared: true,
	open: () => ({ text: ({ text }) => `${text}\n` }),
};
