/** `nexus up`: runs the daemon until a signal stops it. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { exitCodeOf } from "@nexus-stream/protocol";
import { type ConfigFlags, type Daemon, loadConfig, startDaemon } from "../../runtime/runtime.ts";
import type { Declarations, Local } from "../command.ts";
import { configSourceOf, type Host } from "../host.ts";
import { onInterrupt } from "../interrupt.ts";
import { oneLine, type Terminal } from "../terminal.ts";

export const declare: Declarations = {
	up: (command, local) =>
		command
			.option("--host <host>", "address to listen on (NEXUS_HOST; default 127.0.0.1)")
			.option("--port <port>", "port, 0 = any free one (NEXUS_PORT; default 7777)")
			.option(
				"--grpc-port <port>",
				"gRPC port, 0 = any free one, or off (NEXUS_GRPC_PORT; default: the one after --port)",
			)
			.option("--data <dir>", "where everything is kept (NEXUS_DATA; default ./.nexus)")
			.option(
				"--token <token>",
				"the access token for clients (NEXUS_TOKEN; default: generated and kept in the data directory)",
			)
			.option("--config <file>", "configuration file (NEXUS_CONFIG; default ./nexus.yaml, if there is one)")
			.addHelpText(
				"after",
				"\nExamples:\n  nexus up --port 0 --data /tmp/try\n  NEXUS_TOKEN=$(openssl rand -hex 32) nexus up --host 0.0.0.0",
			)
			.action(async (options: ConfigFlags) => {
				local.host.exit(await up(local, options));
			}),
};

/** Resolves with the exit code. */
async function up({ host, terminal }: Local, flags: ConfigFlags): Promise<number> {
	const config = await loadConfig(flags, configSourceOf(host));
	const stopped = Promise.withResolvers<NodeJS.Signals>();
	onInterrupt(host, stopped.resolve, ["SIGINT", "SIGTERM", "SIGHUP"]);
	const daemon = await startDaemon(config);
	await reportUnhandled(host, daemon);
	terminal.out(terminal.interactive ? greeting(daemon, terminal) : readyLine(daemon));
	releaseHeap(() => daemon.liveRuns === 0);
	const signal = await Promise.race([stopped.promise, daemon.replaced]);
	if (signal === undefined) {
		await daemon.close();
		return REPLACED;
	}
	const waiting = stopWords(daemon);
	daemon.log.info({ signal }, waiting);
	// At another log level a person at the terminal would wait without knowing for what.
	if (terminal.interactive && signal !== "SIGHUP" && !SHOWN_LEVELS.has(config.log.level)) terminal.note(waiting);
	await daemon.close();
	daemon.log.info({}, "stopped");
	return 0;
}

/** The exit code of a daemon that others have declared dead: the supervisor starts it again, under a new number in the store. */
const REPLACED = 75;

/** Levels at which the log itself tells of a stop. */
const SHOWN_LEVELS: ReadonlySet<string> = new Set(["debug", "info"]);

/** How long a stop takes at most, and what it waits for. */
function stopWords({ liveRuns, liveDeliveries, stopDeadlineMs }: Daemon): string {
	const some = (count: number, one: string, many: string) =>
		count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];
	const work = [...some(liveRuns, "run", "runs"), ...some(liveDeliveries, "delivery", "deliveries")];
	const wait =
		work.length === 0 ? "" : `: waiting up to ${Math.ceil(stopDeadlineMs / 1000)} s for ${work.join(" and ")} to end`;
	return `stopping${wait}; once more to leave at once`;
}

/** Logs unhandled failures of a user's agent or plugin with their stack and, where it is known, their run. */
async function reportUnhandled(host: Host, daemon: Daemon): Promise<void> {
	const { currentRun } = await import("../../broker/broker.ts");
	const factsOf = (cause: unknown) => ({ cause, runId: currentRun() });
	host.on("unhandledRejection", (cause) => {
		// Keep running: the affected run fails or times out on its own, and other runs are unaffected.
		daemon.log.error(factsOf(cause), "unhandled rejection; the daemon keeps running");
	});
	host.on("uncaughtException", (cause) => {
		daemon.log.error(factsOf(cause), "uncaught error; the daemon ends");
		try {
			// The code that threw may have left anything behind, so the process ends; what was said until now is kept.
			daemon.flush();
		} catch (refused) {
			daemon.log.error({ cause: refused }, "what was pending could not be saved");
		}
		host.exit(exitCodeOf("internal"));
	});
}

/** One JSON object for the program that started this one. */
const readyLine = (daemon: Daemon) =>
	`${JSON.stringify({
		ready: true,
		url: daemon.url,
		grpc: daemon.grpc,
		sign_in_url: daemon.signInUrl(),
		pid: process.pid,
		engine: daemon.engine,
		data: daemon.data,
	})}\n`;

/** The command as a person types it: in a checkout it is not installed. */
const SELF = import.meta.url.endsWith(".ts") ? "npm run -s nexus --" : "nexus";

const greeting = (daemon: Daemon, terminal: Terminal) => `
  ${terminal.bold("Nexus is running")} (engine: ${daemon.engine}, data: ${daemon.data})

  Open  ${terminal.bold(daemon.signInUrl())}
  Or    ${SELF} send "hello"
${chats(daemon)}
  The address signs you in once; \`${SELF} url\` prints a new one. Ctrl-C stops.

`;

const NAMED_MAX = 5;

/** Accounts on chat platforms, and pairing requests there. */
function chats({ accounts, waiting }: Daemon): string {
	const lines = accounts.length === 0 ? [] : [`Chats ${oneLine(accounts.join(", "), 500)}`];
	for (const { code, sender } of waiting.slice(0, NAMED_MAX))
		lines.push(`Pair  ${oneLine(sender, 100)} wants to write: \`${SELF} pair ${code}\` approves`);
	if (waiting.length > NAMED_MAX)
		lines.push(`      and ${waiting.length - NAMED_MAX} more: \`${SELF} pair\` lists them`);
	return lines.map((line) => `  ${line}\n`).join("");
}

const QUIET_POLL_MS = 500;

/**
 * Loading the program takes twice the heap that running it needs: this returns the rest to the machine, once. It waits for a quiet moment,
 * because the collection stops the process for some 30 ms.
 */
function releaseHeap(isQuiet: () => boolean): void {
	const timer = setInterval(() => {
		if (!isQuiet()) return;
		clearInterval(timer);
		setFlagsFromString("--expose-gc");
		const collect = runInNewContext("gc") as (options: object) => void;
		collect({ type: "major", execution: "sync", flavor: "last-resort" });
	}, QUIET_POLL_MS);
	timer.unref();
}
