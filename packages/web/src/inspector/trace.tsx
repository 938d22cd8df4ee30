/** The way of a message through the pipeline: how long each stage took, what plugins did, and where the answer went. */

import type { DeliveryJson, TraceJson } from "@nexus-stream/protocol";
import { channelName } from "../adapters/channels.ts";
import { DeliveriesTable } from "../adapters/deliveries.tsx";
import { durationText } from "../app/words.ts";
import { stageBars } from "./inspect.ts";

export function Trace({ trace, deliveries }: { trace: TraceJson | undefined; deliveries: readonly DeliveryJson[] }) {
	if (!trace && deliveries.length === 0) return null;
	return (
		<section class="trace" aria-labelledby="trace-title">
			<h2 id="trace-title">Way of the message</h2>
			{trace && (
				<p class="note">
					{channelName(trace.channel)}
					{trace.account !== trace.channel && ` · ${trace.account}`}
					{trace.sender !== "" && ` · ${trace.sender}`}
				</p>
			)}
			{trace && <Stages trace={trace} />}
			{trace && trace.hooks.length > 0 && <Hooks hooks={trace.hooks} />}
			{deliveries.length > 0 && <DeliveriesTable deliveries={deliveries} now={Date.now()} />}
		</section>
	);
}

const Stages = ({ trace }: { trace: TraceJson }) => (
	<ol class="stages">
		{stageBars(trace.stages).map(({ stage, ms, from, share }, index) => (
			<li key={index} data-stage={stage}>
				<span class="stage-name">{stage}</span>
				<span class="stage-track" aria-hidden="true">
					<i style={{ left: `${from * 100}%`, width: `${share * 100}%` }} />
				</span>
				<span class="stage-ms">{durationText(ms)}</span>
			</li>
		))}
	</ol>
);

const Hooks = ({ hooks }: { hooks: TraceJson["hooks"] }) => (
	<ul class="hooks">
		{hooks.map(({ plugin, hook, ms, outcome, detail }, index) => (
			<li key={index} data-outcome={outcome}>
				<code>{plugin}</code> {hook}: {outcome}, {durationText(ms)}
				{detail !== undefined && ` (${detail})`}
			</li>
		))}
	</ul>
);
