/** A connection to one server: a transport of the protocol's library that also says why it is over. */

import type { Transport } from "@modelcontextprotocol/client";

export interface McpTransport extends Transport {
	readonly pid?: number | undefined;
}

export interface LinkEvents {
	/** Once: the connection is over, as far as anybody can tell. A server elsewhere may be gone without a word. */
	lost(why: string): void;
	/** A line for the log. */
	said(line: string): void;
}
