/** The daemon's log: JSON lines on stderr, or short readable lines when a person looks at them. Never holds a token. */

import { type DestinationStream, pino } from "pino";
import type { Log } from "../std/log.ts";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

const SECRET = ["token", "*.token", "authorization", "*.authorization", "cookie", "*.cookie", "sign_in_url"];

export function createLogger(level: LogLevel, stderr: NodeJS.WriteStream & { fd?: number } = process.stderr): Log {
	const destination: DestinationStream = stderr.isTTY
		? { write: (line) => void stderr.write(readable(line)) }
		: pino.destination({ fd: stderr.fd ?? 2, sync: true });
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
	return `${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${[String(msg), ...shown].join("  ")}\n`;
}

function short(value: unknown): string {
	if (typeof value === "string") return value;
	if (typeof value === "object" && value !== null && "stack" in value) return String(value.stack);
	return JSON.stringify(value);
}
