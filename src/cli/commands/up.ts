/** `nexus up`: runs the daemon until it is told to stop. */

import { exitCodeOf } from "../../protocol/protocol.ts";
import { type ConfigFlags, type Daemon, loadConfig, startDaemon } from "../../runtime/runtime.ts";
import type { Local, Outcome } from "../command.ts";
import { giveBackMemory } from "../give-back.ts";
import { placeOf } from "../host.ts";
import { onInterrupt } from "../interrupt.ts";
import { oneLine, type Terminal } from "../terminal.ts";

export async function up({ host, terminal }: Local, flags: ConfigFlags): Outcome {
	const config = await loadConfig(flags, placeOf(host));
	const stopped = Promise.withResolvers<NodeJS.Signals>();
	onInterrupt(host, stopped.resolve);
	const daemon = await startDaemon(config);
	host.on("uncaughtException", (cause) => {
		// Nothing is lost by leaving now: every visible record is durable, and the next start settles what was live.
		daemon.log.error({ cause }, "an error that nobody handled; the daemon ends");
		host.exit(exitCodeOf("internal"));
	});
	terminal.out(terminal.interactive ? greeting(daemon, terminal) : readyLine(daemon));
	giveBackMemory(() => daemon.liveRuns === 0);
	const signal = await stopped.promise;
	daemon.log.info({ signal }, "stopping; once more to leave at once");
	await daemon.close();
	daemon.log.info({}, "stopped");
	return 0;
}

/** One JSON object for the program that started this one. */
const readyLine = (daemon: Daemon) =>
	`${JSON.stringify({
		ready: true,
		url: daemon.url,
		sign_in_url: daemon.signInUrl(),
		pid: process.pid,
		engine: daemon.engine,
		data: daemon.data,
	})}\n`;

/** What to type in a shell: in a checkout the command is not installed. */
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
