/** `tools`, `memory` and `connectors` of `nexus.yaml`: what agents may use of this machine and note, and which addresses connectors may have. */

import { type GuardRules, isAllowEntry } from "@nexus-stream/adapter/net/address-guard";
import { z } from "zod";
import type { ToolsConfig } from "../../engine/engine.ts";
import type { MemoryConfig } from "../../services/memory/memory.ts";
import { byTool, bytes, count, flag, group, say, text } from "../../std/config-words.ts";

const name = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/);

const bash = group({
	enabled: flag,
	wrapper: say(z.array(z.string().min(1)).min(1), "a list: a program that confines the shell, and its arguments"),
	env: say(z.array(name), "a list of names of environment variables that commands may see"),
	outputBytesMax: bytes,
} satisfies Record<keyof NonNullable<ToolsConfig["bash"]>, z.ZodType>);

export const tools = group({
	root: text("a folder; relative to this file"),
	fileBytesMax: bytes,
	bash,
	describe: byTool(z.string().min(1), "a map from tools to texts in which {name} stands for an argument"),
	priority: byTool(z.int(), "a map from tools to whole numbers; higher starts earlier, and 0 is the default"),
} satisfies Record<keyof ToolsConfig, z.ZodType>);

export const memory = group({
	enabled: flag,
	itemsMax: count,
	itemsTotalMax: count,
	charsMax: say(z.int().positive(), "a whole number of characters above 0"),
	recallItemsMax: count,
} satisfies Record<keyof MemoryConfig, z.ZodType>);

export const connectors = group({
	allow: say(
		z.array(z.string().refine(isAllowEntry)),
		"a list of hosts with their ports and of CIDR blocks, such as models.lan:11434 or 10.0.0.0/8",
	),
	allowLoopback: flag,
	inlineApps: say(z.array(z.string().min(1)), "a list of applications, such as [shop]"),
} satisfies Record<keyof GuardRules | "inlineApps", z.ZodType>);
