/** What the model thought before it spoke: folded, with a sign while it goes on. */

import type { ReasoningView } from "@nexus-stream/protocol";
import { Elapsed } from "../../ui/elapsed.tsx";
import { Icon } from "../../ui/icon.tsx";

export function Reasoning({ reasoning, now }: { reasoning: ReasoningView; now: number | undefined }) {
	const live = reasoning.state === "streaming";
	return (
		<details class="aside reasoning" data-state={live ? "live" : "done"}>
			<summary>
				<Icon name="thought" />
				<span>{live ? "Thinking" : "Thought"}</span>
				<Elapsed from={reasoning.startedAt} to={reasoning.endedAt} now={now} />
				<Icon name="chevron" />
			</summary>
			<div class="aside-body" dir="auto">
				{reasoning.text}
			</div>
		</details>
	);
}
