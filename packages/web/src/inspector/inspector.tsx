/** The run inspector: the time of every piece of an answer, its verification, and a replay at the original pace. */

import type { RunView } from "@nexus-stream/protocol";
import { useMemo, useRef } from "preact/hooks";
import { formatRoute } from "../app/route.ts";
import { Verified } from "../chat/view/answer.tsx";
import { outcomeOf } from "../chat/words.ts";
import { isOrdinary } from "../chat/writer.ts";
import { durationText } from "../ui/format.ts";
import { FigureTable, Head, PageFrame } from "../ui/list-page.tsx";
import { Notice } from "../ui/status.tsx";
import { FramesList } from "./frames-list.tsx";
import {
	type Analysis,
	countAt,
	createAnalyser,
	type InspectorState,
	longestGapMs,
	tokensPerSecond,
} from "./inspect.ts";
import type { InspectorPage } from "./inspector-feed.ts";
import { PlayerBar, Replayed, useReplay, useViewAt } from "./replay.tsx";
import { Timeline } from "./timeline-view.tsx";
import { ExecutionLog, Trace } from "./trace.tsx";

export { openInspector } from "./inspector-feed.ts";

export function Inspector({ page }: { page: InspectorPage }) {
	const inspector = page.view.value;
	const { records, count, row, failure } = inspector;
	const analysis = useAnalysis(inspector);
	const { player, send } = useReplay(analysis.durationMs);
	const shown = countAt(analysis.times, player.atMs);
	const view = useViewAt(records, Math.min(shown, count));
	const complete = useViewAt(records, count);
	const origin = records[0]?.frame.ts ?? 0;
	const isGone = failure !== undefined && count === 0;
	return (
		<PageFrame class="inspector" head={<InspectorHead inspector={inspector} complete={complete} isGone={isGone} />}>
			{failure !== undefined && <Notice tone="bad">{failure}</Notice>}
			{!isGone && (
				<>
					<Stats analysis={analysis} usage={complete.usage ?? row?.usage} engine={row?.engine} />
					<Timeline
						analysis={analysis}
						records={records}
						atMs={player.atMs}
						onSeek={(atMs) => send({ type: "seek", atMs })}
					/>
					<div class="replay">
						<PlayerBar player={player} send={send} />
						<Replayed view={view} player={player} origin={origin} />
					</div>
				</>
			)}
			<ExecutionLog entries={inspector.log ?? []} origin={origin} />
			<Trace trace={row?.trace} deliveries={inspector.deliveries ?? []} />
			{!isGone && (
				<>
					<StreamsTable analysis={analysis} />
					<FramesList
						records={records}
						count={count}
						times={analysis.times}
						shown={shown}
						onPick={(index) => send({ type: "seek", atMs: analysis.times[index] ?? 0 })}
					/>
				</>
			)}
		</PageFrame>
	);
}

function InspectorHead(props: { inspector: InspectorState; complete: RunView; isGone: boolean }) {
	const { inspector, complete, isGone } = props;
	const { row, count, runId } = inspector;
	const session = row?.session ?? complete.session;
	const isLab = session !== undefined && !isOrdinary({ session });
	const back = formatRoute(isLab ? { name: "lab" } : session ? { name: "chat", session } : { name: "home" });
	const outcome = outcomeOf(count === 0 ? undefined : complete, row);
	const title = (
		<>
			Run <code>{runId}</code>
		</>
	);
	return (
		<Head title={title} back={{ href: back, label: isLab ? "Lab" : "Session" }}>
			<span class="status" data-tone={outcome?.tone ?? (isGone ? "bad" : "live")}>
				{outcome?.title ?? (count > 0 ? "Live" : isGone ? "Not there" : "Loading")}
			</span>
			<Verified view={complete} />
		</Head>
	);
}

function useAnalysis({ records, count }: InspectorState): Analysis {
	const state = useRef<{ analyser: ReturnType<typeof createAnalyser>; count: number; records: unknown } | undefined>(
		undefined,
	);
	return useMemo(() => {
		if (state.current?.records !== records) state.current = { analyser: createAnalyser(), count: 0, records };
		state.current.analyser.push(records, state.current.count);
		state.current.count = records.length;
		return state.current.analyser.result();
	}, [records, count]);
}

function Stats(props: { analysis: Analysis; usage: RunView["usage"]; engine: string | undefined }) {
	const { analysis, usage, engine } = props;
	return (
		<dl class="stats">
			<Stat name="First text" value={analysis.firstTextMs === undefined ? "–" : durationText(analysis.firstTextMs)} />
			<Stat name="Tokens per second" value={rate(analysis, usage?.output)} />
			<Stat name="Total time" value={durationText(analysis.durationMs)} />
			<Stat name="Tokens in / out" value={`${tokens(usage?.input)} / ${tokens(usage?.output)}`} />
			<Stat name="Streams" value={String(analysis.lanes.length)} />
			<Stat name="Frames" value={analysis.times.length.toLocaleString("en")} />
			<Stat name="Text" value={`${analysis.textChars.toLocaleString("en")} chars`} />
			<Stat name="Engine" value={engine ?? "–"} />
		</dl>
	);
}

const Stat = ({ name, value }: { name: string; value: string }) => (
	<div class="stat">
		<dt>{name}</dt>
		<dd>{value}</dd>
	</div>
);

const tokens = (count: number | undefined): string =>
	count === undefined || count < 0 ? "–" : count.toLocaleString("en");

function rate(analysis: Analysis, output: number | undefined): string {
	const value = tokensPerSecond(analysis, output);
	return value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });
}

const StreamsTable = ({ analysis }: { analysis: Analysis }) => (
	<section class="streams" aria-label="Streams">
		<h2>Streams</h2>
		<FigureTable
			label="Streams in numbers"
			rows={analysis.lanes}
			keyOf={({ messageId }) => messageId}
			columns={[
				{ name: "Stream", cell: ({ label }) => <span dir="auto">{label}</span> },
				{ name: "From", cell: ({ beginMs }) => durationText(beginMs) },
				{ name: "Lasted", cell: ({ beginMs, endMs, lastMs }) => durationText((endMs ?? lastMs) - beginMs) },
				{ name: "Chunks", cell: ({ ticks }) => ticks.length.toLocaleString("en") },
				{ name: "Characters", cell: ({ chars }) => chars.toLocaleString("en") },
				{ name: "Longest silence", cell: (lane) => durationText(longestGapMs(lane)) },
				{ name: "End", cell: ({ reason }) => reason ?? "open" },
				{ name: "Checksum", cell: ({ checksum = "" }) => <code>{checksum}</code> },
			]}
		/>
	</section>
);
