/** What a new session shows: what to try first. */

const PROMPTS = [
	{ title: "A tour of everything", text: "Show me what you can stream" },
	{ title: "A long answer to stop", text: "/demo tokens=600 rate=40" },
	{ title: "Thinking and tools", text: "/demo tokens=120 rate=30 reasoning=1 tools=2 tool_ms=1500" },
	{ title: "Product cards in the text", text: "/demo tokens=150 rate=40 cards=3" },
	{ title: "An answer that fails", text: "/demo tokens=200 rate=40 fail_after=60" },
] as const;

export function EmptyState({ onPick }: { onPick(text: string): void }) {
	return (
		<section class="empty">
			<h2>Start with a message</h2>
			<p>Answers appear while they are written, survive a lost connection, and can be replayed later.</p>
			<ul>
				{PROMPTS.map(({ title, text }) => (
					<li key={text}>
						<button type="button" onClick={() => onPick(text)}>
							<strong>{title}</strong>
							<code>{text}</code>
						</button>
					</li>
				))}
			</ul>
		</section>
	);
}
