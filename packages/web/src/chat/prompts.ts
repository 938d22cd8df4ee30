/** Messages to try. Only the demo agent understands directives. */

export interface Prompt {
	readonly title: string;
	readonly text: string;
}

const CHAT_DEMO: readonly Prompt[] = [
	{ title: "A tour of everything", text: "Show me what you can stream" },
	{ title: "A long answer to stop", text: "/demo tokens=600 rate=40" },
	{ title: "Thinking and tools", text: "/demo tokens=120 rate=30 reasoning=1 tools=2 tool_ms=1500" },
	{ title: "Product cards in the text", text: "/demo tokens=150 rate=40 cards=3" },
	{ title: "An answer that fails", text: "/demo tokens=200 rate=40 fail_after=60" },
];

const LAB_DEMO: readonly Prompt[] = [
	{ title: "A tool and some text", text: "/demo tokens=200 rate=40 tools=1" },
	{ title: "Everything", text: "Show me what you can stream" },
	{ title: "A long answer", text: "/demo tokens=900 rate=120" },
	{ title: "Several messages", text: "/demo tokens=240 rate=40 messages=3" },
];

const ANY: readonly Prompt[] = [
	{ title: "Formatting", text: "Explain what a log is, with a list, a table and a few lines of code" },
	{ title: "A long answer", text: "Tell me a story of about a thousand words" },
	{ title: "A short answer", text: "Say hello in one sentence" },
];

/** A script plays the same answers to any message. */
const SCRIPTED: readonly Prompt[] = [{ title: "Play the script", text: "Show me what you can do" }];

/** None until the daemon has named its engine. */
function promptsOf(demo: readonly Prompt[], engine: string | undefined, scripted = false): readonly Prompt[] {
	if (engine === undefined) return [];
	if (engine === "demo") return demo;
	return scripted ? SCRIPTED : ANY;
}

export const chatPrompts = (engine: string | undefined, scripted?: boolean) => promptsOf(CHAT_DEMO, engine, scripted);
export const labPrompts = (engine: string | undefined) => promptsOf(LAB_DEMO, engine);
