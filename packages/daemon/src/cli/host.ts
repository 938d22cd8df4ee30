/** The process that a command runs in, as far as commands deal with it: `process` is one, a test makes its own. */

export type InputStream = NodeJS.ReadableStream & { readonly isTTY?: boolean };
export type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

export interface Host {
	readonly stdin: InputStream;
	readonly stdout: OutputStream;
	readonly stderr: OutputStream;
	readonly env: Readonly<Record<string, string | undefined>>;
	cwd(): string;
	on(event: "SIGINT" | "SIGTERM" | "SIGHUP", listener: (signal: NodeJS.Signals) => void): unknown;
	on(event: "uncaughtException", listener: (cause: Error) => void): unknown;
	on(event: "unhandledRejection", listener: (cause: unknown) => void): unknown;
	/** Leaves at once. */
	exit(code: number): void;
	/** The exit code once nothing is left to do. */
	exitCode?: number | string | null | undefined;
}

/** Where configuration is looked for. */
export const configSourceOf = (host: Host) => ({ cwd: host.cwd(), env: host.env });
