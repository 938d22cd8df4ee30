/**
 * A kit adapter whose messages can be edited and taken away, so that they begin before their text. The platform is a file of calls. The
 * process that makes call `n` to the chat `name!n` dies when the platform has done it; to `name?n`, before.
 */

import { appendFileSync } from "node:fs";
import {
	type Platform,
	PlatformError,
	type Session,
	serve,
	type Target,
} from "../../../../packages/adapter/src/kit.ts";
import { linesOf } from "../../../lines.ts";

interface Line {
	op: "create" | "edit" | "remove" | "death";
	to: string;
	id?: string;
	nonce?: string;
	text?: string;
}

const linesIn = (file: string): Line[] => linesOf(file).map((line) => JSON.parse(line) as Line);

function openFile(file: string, refuseEdits: boolean): Session {
	const write = (line: Line) => appendFileSync(file, `${JSON.stringify(line)}\n`);
	const die = (to: string): never => {
		write({ op: "death", to });
		process.kill(process.pid, "SIGKILL");
		for (;;);
	};
	const call = (line: Line) => {
		const { to } = line;
		const calls = linesIn(file).filter((each) => each.to === to);
		const [, when, at] = /([!?])(\d+)$/.exec(to) ?? [];
		const isDue = Number(at) === calls.length + 1;
		if (isDue && when === "?") die(to);
		write(line);
		if (isDue) die(to);
	};
	const create = (to: string, text: string, nonce: string) => {
		if (text.trim() === "") throw new PlatformError("invalid", "an empty message");
		const id = `m${linesIn(file).length}-${process.pid}`;
		call({ op: "create", to, id, nonce, text });
		return { messageId: id };
	};
	const must = (id: string) => {
		const lines = linesIn(file).filter((line) => line.id === id);
		if (lines.length === 0 || lines.some(({ op }) => op === "remove")) throw new PlatformError("gone", "not there");
	};
	return {
		create: async ({ to }: Target, text, { nonce }) => create(to, text, nonce),
		editing: {
			async edit({ to }, id, text) {
				if (refuseEdits) throw new PlatformError("denied", "no edits here");
				must(id);
				call({ op: "edit", to, id, text });
			},
			async remove({ to }, id) {
				must(id);
				call({ op: "remove", to, id });
			},
		},
		attaching: {
			attach: async ({ to }, { name }, { nonce }) => create(to, `<${name.replace(/-\d+/, "")}>`, nonce),
		},
		async find({ to }, nonce) {
			const found = linesIn(file).findLast((line) => line.to === to && line.nonce === nonce);
			return found?.id === undefined ? undefined : { messageId: found.id };
		},
		health: async () => ({ ok: true, detail: file }),
	};
}

const platform: Platform = {
	info: {
		channel: "early",
		version: "1",
		protocol: 1,
		supports: ["send", "stream", "health", "attachments"],
		fields: ["runId", "offset", "intent"],
		limits: { textMax: 1000, unit: "utf16" },
		reconcile: "history",
		settings: [
			{ name: "file", secret: false, required: true, prompt: "Where calls go" },
			{ name: "refuse_edits", secret: false, required: false, prompt: "yes: edits are denied" },
		],
	},
	render: (markdown) => markdown,
	measure: (rendered) => rendered.length,
	pace: () => ({ targetIntervalMs: 1 }),
	open: ({ settings }) => openFile(settings.file ?? "", settings.refuse_edits === "yes"),
};

await serve(platform, process.argv.slice(2));
