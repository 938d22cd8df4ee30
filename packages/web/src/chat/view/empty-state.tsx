/** What a new session shows: what to try first. */

import type { Prompt } from "../prompts.ts";

export function EmptyState({ prompts, onPick }: { prompts: readonly Prompt[]; onPick(text: string): void }) {
	return (
		<section class="empty">
			<h2>Start with a message</h2>
			<p>Answers appear while they are written, survive a lost connection, and can be replayed later.</p>
			<ul>
				{prompts.map(({ title, text }) => (
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
