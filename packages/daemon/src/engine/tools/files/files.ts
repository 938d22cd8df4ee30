/** The tools that read, write and edit text files below the configured folder. */

import { fieldsOf, type Tool, type ToolContext, type ToolResult, textResult } from "../../tool.ts";
import { refuseProtected } from "./contained-path.ts";
import { type ReadOptions, readTextFile } from "./read-file.ts";
import { editTextFile, type WriteOptions, writeTextFile } from "./write-file.ts";

export interface FileOptions {
	root: string;
	fileBytesMax: number;
	/** Files that no tool may write. */
	protectedFiles: readonly string[];
	/** Files that no tool may read. */
	secretFiles: readonly string[];
}

export const fileTools = (options: FileOptions): Tool[] => [readTool(options), writeTool(options), editTool(options)];

const PATH = {
	type: "string",
	minLength: 1,
	maxLength: 4096,
	description: "Path relative to the configured folder.",
} as const;

export const readTool = ({ root, ...options }: ReadOptions & { root: string }): Tool => ({
	name: "read",
	description: "Reads a text file. Only files below the configured folder can be read.",
	parameters: fieldsOf({ path: PATH }, "path"),
	execute: async ({ path }) => textResult(await readTextFile(root, path as string, options)),
});

const writeTool = (options: FileOptions): Tool => ({
	...changing,
	name: "write",
	description: "Writes a text file below the configured folder: makes it with its folders, or replaces all of it.",
	parameters: fieldsOf({ path: PATH, content: { type: "string", description: "All of the file." } }, "path", "content"),
	describe: ({ path }) => `✏️ Writing ${typeof path === "string" ? path : "file"}`,
	async execute({ path, content }, context): Promise<ToolResult> {
		const asked = path as string;
		stopIfAborted(context);
		const { created, bytes } = await writeTextFile(options.root, asked, content as string, writing(options, asked));
		return textResult(`${created ? "created" : "replaced"} "${asked}": ${bytes} bytes`);
	},
});

const editTool = (options: FileOptions): Tool => ({
	...changing,
	name: "edit",
	description:
		"Replaces one piece of a text file below the configured folder. The old piece has to stand in the file exactly once.",
	parameters: fieldsOf(
		{
			path: PATH,
			old_text: {
				type: "string",
				minLength: 1,
				description: "Exactly as it stands in the file, line breaks included.",
			},
			new_text: { type: "string", description: "What takes its place; may be empty." },
		},
		"path",
		"old_text",
		"new_text",
	),
	async execute({ path, old_text, new_text }, context): Promise<ToolResult> {
		const asked = path as string;
		stopIfAborted(context);
		const change = (text: string) => replaceOnce(text, old_text as string, new_text as string, asked);
		await editTextFile(options.root, asked, change, writing(options, asked));
		return textResult(`edited "${asked}"`);
	},
});

const changing = { exclusive: true, approval: "non-owner" } as const;

const writing = ({ fileBytesMax, protectedFiles }: FileOptions, asked: string): WriteOptions => ({
	fileBytesMax,
	guard: (real, found) => refuseProtected(protectedFiles, asked, real, found),
});

function stopIfAborted({ signal }: ToolContext): void {
	if (signal.aborted) throw new Error("stopped before anything was written");
}

/** Throws words for the model unless `old` stands in the text exactly once, overlaps counted. */
export function replaceOnce(text: string, old: string, replacement: string, asked: string): string {
	if (old === "") throw new Error("old_text is empty: say which piece is to be replaced");
	if (old === replacement) throw new Error("old_text and new_text are the same: nothing was changed");
	const at = text.indexOf(old);
	if (at < 0) throw new Error(`old_text does not stand in "${asked}": read the file and copy the piece exactly`);
	if (text.indexOf(old, at + 1) >= 0)
		throw new Error(`old_text stands in "${asked}" more than once: take more of the lines around it`);
	return text.slice(0, at) + replacement + text.slice(at + old.length);
}
