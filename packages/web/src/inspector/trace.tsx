/** The trace of a message through the pipeline (stages, hooks, deliveries), and the execution log of its run. */

import type { DeliveryJson, LogEntryJson, TraceJson } from "@nexus-stream/protocol/api";
import { channelName } from "../adapters/channels.tsx";
import { DeliveriesTable } from "../adapters/deliveries.tsx";
import { Speaker } from "../chat/view/answer.tsx";
import { durationText } from "../ui/format.ts";
import { FigureTable, Section } from "../ui/list-page.tsx";
import { stageBars } from "./inspect.ts";

export function Trace({ trace, deliveries }: { trace: TraceJson | undefined; deliveries: readonly DeliveryJson[] }) {
	if (!trace && deliveries.length === 0) return null;
	return (
		<Section class="trace" id="trace-title" title="Way of the message">
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
		</Section>
	);
}

const Stages = ({ trace }: { trace: TraceJson }) => (
	<ol class="box stages">
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

/** A tool has an entry for its start and one for its end. */
const kindWords = (kind: string, data: LogEntryJson["data"]): string =>
	kind === "tool" && typeof data?.status === "string" ? `tool ${data.status}` : kind;

export function ExecutionLog({ entries, origin }: { entries: readonly LogEntryJson[]; origin: number }) {
	if (entries.length === 0) return null;
	return (
		<section class="streams" aria-label="Execution log">
			<h2>Execution log</h2>
			<FigureTable
				label="Execution log"
				rows={entries}
				keyOf={(_, index) => index}
				columns={[
					{ name: "At", cell: ({ at }) => durationText(at - origin) },
					{ name: "Agent", cell: ({ agent }) => agent !== undefined && <Speaker agent={agent} /> },
					{ name: "Kind", cell: ({ kind, data }) => kindWords(kind, data) },
					{ name: "What", cell: ({ text }) => <span dir="auto">{text}</span> },
				]}
			/>
		</section>
	);
}
