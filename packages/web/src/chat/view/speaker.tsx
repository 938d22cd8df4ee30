/** Who says what follows, in a run of several agents. */

import { toneOf } from "../lanes.ts";

export const Speaker = ({ agent, what = "" }: { agent: string; what?: string }) => (
	<div class="speaker" data-tone={toneOf(agent)}>
		<i aria-hidden="true" />
		<span>{agent}</span>
		{what !== "" && <small>{what}</small>}
	</div>
);
