/** The memory page: what agents have noted, where it comes from, and a way to have it forgotten. */

import { Notice } from "../adapters/channel-parts.tsx";
import type { WebApp } from "../app/app.ts";
import { Head } from "../ui/head.tsx";
import { Scrollable } from "../ui/scrollable.tsx";
import { bankWords, type MemoryView, provenanceWords } from "./memory.ts";

/** Which one a button forgets, for those who hear it. */
const FORGET_CHARS_MAX = 80;

export function Memory({ memory, app }: { memory: MemoryView; app: WebApp }) {
	const { phase, failure, notice, items, query, enabled } = memory;
	const isBlank = phase === "ready" && items.length === 0;
	return (
		<div class="adapters">
			<Head app={app} title="Memory" />
			<div class="scroll">
				<div class="memory-body">
					{!enabled && <SwitchedOff />}
					<form class="memory-search" hidden={isBlank && query === ""} onSubmit={(event) => event.preventDefault()}>
						<input
							type="search"
							placeholder="Search by words…"
							aria-label="Search by words"
							value={query}
							onInput={(event) => app.memory()?.search(event.currentTarget.value)}
						/>
					</form>
					{failure !== undefined && <Notice tone="bad">{failure}</Notice>}
					{notice !== undefined && <Notice tone="quiet">{notice}</Notice>}
					{phase === "loading" && <p class="note">Loading…</p>}
					{isBlank && query !== "" && <p class="blank">No note has these words.</p>}
					{isBlank && query === "" && enabled && (
						<p class="blank">Nothing yet. What agents note about their work and about people is listed here.</p>
					)}
					{items.length > 0 && <Items memory={memory} app={app} />}
				</div>
			</div>
		</div>
	);
}

const SwitchedOff = () => (
	<p class="memory-off">
		Memory is switched off: agents note nothing and recall nothing. To switch it on, write{" "}
		<code>{"memory: { enabled: true }"}</code> in <code>nexus.yaml</code> and start Nexus again.
	</p>
);

function Items({ memory: { items, forgetting }, app }: { memory: MemoryView; app: WebApp }) {
	const now = Date.now();
	return (
		<Scrollable as="div" class="list-frame" label="What is remembered">
			<table class="list">
				<thead>
					<tr>
						<th>Whose</th>
						<th>What</th>
						<th>From</th>
						<th>
							<span class="sr">Forget</span>
						</th>
					</tr>
				</thead>
				<tbody>
					{items.map((item) => (
						<tr key={item.memoryId}>
							<td data-label="Whose">{bankWords(item.bank)}</td>
							<td data-label="What" class="said">
								<span class="said-text" dir="auto">
									{item.text}
								</span>
							</td>
							<td data-label="From">{provenanceWords(item, now)}</td>
							<td>
								<button
									type="button"
									class="quiet"
									aria-label={`Forget: ${item.text.slice(0, FORGET_CHARS_MAX)}`}
									disabled={forgetting !== undefined}
									onClick={() => app.memory()?.forget(item.memoryId)}
								>
									{forgetting === item.memoryId ? "Forgetting…" : "Forget"}
								</button>
							</td>
						</tr>
					))}
				</tbody>
			</table>
		</Scrollable>
	);
}
