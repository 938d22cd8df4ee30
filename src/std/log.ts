/** What the parts need of a logger: pino fits it as it is. */

type Write = (facts: object, message: string) => void;

export interface Log {
	debug: Write;
	info: Write;
	warn: Write;
	error: Write;
}

/** For tests and tools that do not log. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
