import { expect, test } from "vitest";
import { parseConfig } from "../../packages/daemon/src/runtime/config/config-file.ts";

test("keys in the spelling of similar software mean ours", () => {
	const config = parseConfig(
		`
adapters:
  telegram:
    streaming:
      enabled: true
      mode: draft_edit
      typing_interval_ms: 3000

  discord:
    streaming:
      enabled: true
      mode: accumulate
      typing_interval_ms: 5000

  imessage:
    streaming:
      enabled: false  # No typing indicator support
`,
		"nexus.yaml",
	);
	expect(config.channels).toEqual({
		telegram: { streaming: { enabled: true, mode: "draft_edit" }, typing: { intervalMs: 3000 } },
		discord: { streaming: { enabled: true, mode: "accumulate" }, typing: { intervalMs: 5000 } },
		imessage: { streaming: { enabled: false } },
	});
});

test("a mistake below them is reported with its position", () => {
	const text = "adapters:\n  telegram:\n    streaming:\n      typing_interval_ms: soon\n      mode: live\n";
	expect(() => parseConfig(text, "nexus.yaml")).toThrow(
		/nexus\.yaml:4:27: channels\.telegram\.typing\.intervalMs: "soon" is not allowed.*\nnexus\.yaml:5:13: channels\.telegram\.streaming\.mode: "live" is not allowed; allowed: draft_edit, accumulate, blocks, off/,
	);
});

test("one of two spellings at once is refused", () => {
	expect(() => parseConfig("adapters: {}\nchannels: {}\n", "nexus.yaml")).toThrow(/1:1: adapters: unknown key/);
});

test("streaming of an account is accepted in addition to the channel's", () => {
	const { channels } = parseConfig(
		"channels:\n  slack:\n    streaming: { mode: blocks }\n    accounts:\n      loud: { streaming: { mode: draft_edit, placeholder: … } }\n",
		"nexus.yaml",
	);
	expect(channels?.slack?.accounts?.loud?.streaming).toEqual({ mode: "draft_edit", placeholder: "…" });
});
