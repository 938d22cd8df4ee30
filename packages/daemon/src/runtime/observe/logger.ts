/** The daemon's log: JSON lines on stderr, or short readable lines when a person looks at them. Never holds a token. */

import type { Log } from "@nexus-stream/protocol/log";
import { type DestinationStream, pino } from "pino";
import { printable, printableJson } from "../../std/clip.ts";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

const SECRET = ["token", "*.token", "authorization", "*.authorization", "cookie", "*.cookie", "sign_in_url"];

export function createLogger(level: LogLevel, stderr: NodeJS.WriteStream & { fd?: number } = process.stderr): Log {
	// Logs hold what strangers and adapters said, and are read in terminals.
	const file = stderr.isTTY ? undefined : pino.destination({ fd: stderr.fd ?? 2, sync: true });
	const destination: DestinationStream = {
		write: (line) => void (file ? file.write(printableJson(line)) : stderr.write(readable(line))),
	};
	return pino(
		{
			level,
			base: null,
			redact: { paths: SECRET, censor: "[secret]" },
			formatters: { level: (label) => ({ level: label }) },
			timestamp: pino.stdTimeFunctions.isoTime,
			serializers: { cause: pino.stdSerializers.err, err: pino.stdSerializers.err },
		},
		destination,
	);
}

/** `12:34:56 warn  message  key=value`, from one JSON line. */
export function readable(line: string): string {
	const { level, time, msg, ...facts } = JSON.parse(line) as Record<string, unknown>;
	const shown = Object.entries(facts).map(([key, value]) => `${key}=${short(value)}`);
	return printable(`${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${[short(msg), ...shown].join("  ")}\n`);
}

function short(value: unknown): string {
	// A line feed in foreign text would forge a line of the log.
	if (typeof value === "string") return value.replaceAll("\n", "\\n");
	if (typeof value === "object" && value !== null && "stack" in value) return String(value.stack);
	return JSON.stringify(value);
}
