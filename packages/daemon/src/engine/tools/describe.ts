/** Describes a tool call in one line for people. Descriptions cut arguments; approvals show them whole. */

import type { Describe } from "../tool.ts";

const COMMAND_CHARS_MAX = 50;
const PATH_CHARS_MAX = 200;
const DESCRIPTION_CHARS_MAX = 300;

/** By tool; more can be added, by configuration or by the tool itself. */
const DESCRIPTIONS: Readonly<Record<string, Describe>> = {
	read: (args) => `📖 Reading ${fileOf(args)}`,
	edit: (args) => `✏️ Editing ${fileOf(args)}`,
	bash: ({ command }) => {
		const text = typeof command === "string" ? command.trim() : "";
		const what = /^git(?![\w-])/.test(text) ? "🔧 Running git command" : "🖥️ Running command";
		return `${what}: ${cut(text, COMMAND_CHARS_MAX)}`;
	},
};

export function describeCall(name: string, args: unknown, own?: Describe): string {
	const fields = typeof args === "object" && args !== null ? (args as Record<string, unknown>) : {};
	const known = (Object.hasOwn(DESCRIPTIONS, name) ? DESCRIPTIONS[name] : undefined) ?? describeOther;
	return oneLine(cut((own && descriptionOf(own, fields, name)) || known(fields, name), DESCRIPTION_CHARS_MAX));
}

/** Describes a call that waits for approval: it must not read as if it already ran. */
export function describeWanted(name: string, args: unknown): string {
	const { command, file_path, path } = (typeof args === "object" && args !== null ? args : {}) as Record<
		string,
		unknown
	>;
	if (typeof command === "string" && command.trim() !== "")
		return oneLine(`Wants to run: ${cut(command.trim(), COMMAND_CHARS_MAX)}`);
	const file = [file_path, path].find((value) => typeof value === "string" && value !== "");
	return oneLine(`Wants to run: ${name}${file === undefined ? "" : ` ${cut(file as string, PATH_CHARS_MAX)}`}`);
}

/** From a template: `{path}` stands for an argument. One that the call does not have is left out. */
export const describeBy =
	(template: string): Describe =>
	(args) =>
		template.replace(/\{(\w+)\}/g, (_, name: string) => {
			const value = Object.hasOwn(args, name) ? args[name] : undefined;
			return value === undefined ? "" : cut(typeof value === "string" ? value : JSON.stringify(value), PATH_CHARS_MAX);
		});

/** A tool whose description fails is described as any other: it can still do its work. */
function descriptionOf(own: Describe, fields: Record<string, unknown>, name: string): string | undefined {
	try {
		const text: unknown = own(fields, name);
		return typeof text === "string" ? text : undefined;
	} catch {
		return undefined;
	}
}

const describeOther: Describe = (_args, name) => {
	if (!name.startsWith("mcp__")) return `🛠️ Using ${name || "tool"}`;
	const [, server, action] = name.split("__");
	return `🔌 Using ${server || "mcp"} to ${(action || "action").replaceAll("_", " ")}`;
};

function fileOf({ file_path, path }: Readonly<Record<string, unknown>>): string {
	const named = [file_path, path].find((value) => typeof value === "string" && value !== "");
	return cut((named as string | undefined) ?? "file", PATH_CHARS_MAX);
}

/** By characters, never within one. */
function cut(text: string, charsMax: number): string {
	const chars = Array.from(text.slice(0, charsMax * 4));
	return chars.length <= charsMax && text.length <= charsMax * 4 ? text : `${chars.slice(0, charsMax).join("")}...`;
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();
