/** The logger that all parts use; pino implements it as it is. */

type LogFunction = (facts: object, message: string) => void;

export interface Log {
	debug: LogFunction;
	info: LogFunction;
	warn: LogFunction;
	error: LogFunction;
}

/** For tests and tools that do not log. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
