/** What happened in a run beside its words: who was asked, why, what was tried again. */

import type { LogEntryJson } from "@nexus-stream/protocol";
import { durationText } from "../../app/words.ts";
import { Scrollable } from "../../ui/scrollable.tsx";
import { Speaker } from "./speaker.tsx";

/** A tool has an entry for its start and one for its end. */
const kindWords = (kind: string, data: LogEntryJson["data"]): string =>
	kind === "tool" && typeof data?.status === "string" ? `tool ${data.status}` : kind;

export function ExecutionLog({ entries, origin }: { entries: readonly LogEntryJson[]; origin: number }) {
	if (entries.length === 0) return null;
	return (
		<section class="streams" aria-label="Execution log">
			<h2>Execution log</h2>
			<Scrollable as="div" class="table-frame" label="Execution log">
				<table>
					<thead>
						<tr>
							<th>At</th>
							<th>Agent</th>
							<th>Kind</th>
							<th>What</th>
						</tr>
					</thead>
					<tbody>
						{entries.map(({ id, at, agent, kind, text, data }) => (
							<tr key={id}>
								<td>{durationText(at - origin)}</td>
								<td>{agent === undefined ? "" : <Speaker agent={agent} />}</td>
								<td>{kindWords(kind, data)}</td>
								<td dir="auto">{text}</td>
							</tr>
						))}
					</tbody>
				</table>
			</Scrollable>
		</section>
	);
}
