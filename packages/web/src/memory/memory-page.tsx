/** Lists the notes of agents with their origin, and lets a person search and forget them. */

import { Head, ListTable, Notices, PageFrame } from "../ui/list-page.tsx";
import { bankWords, type MemoryPage, provenanceWords } from "./memory.ts";

export { openMemory } from "./memory.ts";

/** How much of a note its button reads aloud. */
const FORGET_CHARS_MAX = 80;

export function Memory({ page }: { page: MemoryPage }) {
	const view = page.view.value;
	const { isLoaded, items, query, enabled } = view;
	const isBlank = isLoaded && items.length === 0;
	return (
		<PageFrame class="memory" head={<Head title="Memory" />}>
			{!enabled && <SwitchedOff />}
			<form class="memory-search" hidden={isBlank && query === ""} onSubmit={(event) => event.preventDefault()}>
				<input
					type="search"
					placeholder="Search by words…"
					aria-label="Search by words"
					value={query}
					onInput={(event) => page.actions.search(event.currentTarget.value)}
				/>
			</form>
			<Notices view={view} />
			{isBlank && query !== "" && <p class="blank">No note has these words.</p>}
			{isBlank && query === "" && enabled && (
				<p class="blank">Nothing yet. What agents note about their work and about people is listed here.</p>
			)}
			{items.length > 0 && <Items page={page} />}
		</PageFrame>
	);
}

const SwitchedOff = () => (
	<p class="blank memory-off">
		Memory is switched off: agents note nothing and recall nothing. To switch it on, write{" "}
		<code>{"memory: { enabled: true }"}</code> in <code>nexus.yaml</code> and start Nexus again.
	</p>
);

function Items({ page: { view, actions } }: { page: MemoryPage }) {
	const { items, forgetting } = view.value;
	const now = Date.now();
	return (
		<ListTable label="What is remembered" columns={["Whose", "What", "From", "(Forget)"]}>
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
							onClick={() => actions.forget(item.memoryId)}
						>
							{forgetting === item.memoryId ? "Forgetting…" : "Forget"}
						</button>
					</td>
				</tr>
			))}
		</ListTable>
	);
}
