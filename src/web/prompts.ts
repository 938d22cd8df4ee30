/** Messages to try: the demo agent takes directives, which would mean nothing to anything else. */

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

/** None until it is known what answers. */
const promptsOf = (demo: readonly Prompt[], engine: string | undefined): readonly Prompt[] =>
	engine === undefined ? [] : engine === "demo" ? demo : ANY;

export const chatPrompts = (engine: string | undefined) => promptsOf(CHAT_DEMO, engine);
export const labPrompts = (engine: string | undefined) => promptsOf(LAB_DEMO, engine);
