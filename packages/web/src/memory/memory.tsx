/** The memory page: its state, its load and its actions; and the list of notes with their origin, which a person can search and forget. */

import type { MemoryItem } from "@nexus-stream/client/gen/nexus/runtime/v1/memory_pb";
import { loadRuntime, msOf } from "../app/runtime.ts";
import { Button } from "../ui/element.tsx";
import { ageText } from "../ui/format.ts";
import { Head, ListTable, type ListView, Notices, PageFrame, Said } from "../ui/list-page.tsx";
import { createPage, type PageContext, type PageState } from "../ui/page.ts";

export interface MemoryView extends ListView {
	/** The searched words; empty lists the newest notes. */
	readonly query: string;
	readonly items: readonly MemoryItem[];
	/** Whether agents may note and recall; assumed until the daemon has answered. */
	readonly enabled: boolean;
	/** The id of the note whose removal is in flight. */
	readonly forgetting?: string;
}

export const NEW_MEMORY: MemoryView = { isLoaded: false, query: "", items: [], enabled: true };

/** The owner of a note, in words. */
export function bankWords(bank: string): string {
	const [kind = "", ...rest] = bank.split(":");
	const name = rest.join(":");
	return kind === "agent" ? `Agent ${name}` : kind === "person" ? `Person ${name}` : bank;
}

export function provenanceWords({ agent, sender, channel, createdAt }: MemoryItem, now: number): string {
	const by = agent === "" ? "" : ` by ${agent}`;
	const from = sender === "" ? "" : `, said by ${sender}${channel === "" ? "" : ` on ${channel}`}`;
	return `${ageText(msOf(createdAt) ?? now, now)}${by}${from}`;
}

const ROWS_MAX = 100;
const EVERY_MS = 5000;

export type MemoryPage = ReturnType<typeof openMemory>;

export const openMemory = (context: PageContext) =>
	createPage({
		initial: NEW_MEMORY,
		context,
		connect: (page) => ({
			load: () => load(page),
			retryMs: () => EVERY_MS,
			actions: {
				search(query: string) {
					page.change({ query: query.trim(), notice: undefined });
					page.reload();
				},
				forget: (id: string) => void forget(page, id),
			},
		}),
	});

async function load(page: PageState<MemoryView>): Promise<number> {
	const { query } = page.newest;
	const { memory } = await loadRuntime();
	const { items, enabled } = await memory.listMemory({ pageSize: ROWS_MAX, query });
	// Ignore the response to an outdated query.
	if (query === page.newest.query) page.change({ failure: undefined, isLoaded: true, items, enabled });
	return EVERY_MS;
}

async function forget(page: PageState<MemoryView>, memoryId: string): Promise<void> {
	page.change({ forgetting: memoryId });
	await page.act(async () => {
		await (await loadRuntime()).memory.forget({ memoryId });
		return "Forgotten. Turns keep their text.";
	});
	page.change({ forgetting: undefined });
}

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
		<ListTable
			label="What is remembered"
			rows={items}
			keyOf={({ memoryId }) => memoryId}
			columns={[
				{ name: "Whose", cell: ({ bank }) => bankWords(bank) },
				{ name: "What", class: "said", cell: ({ text }) => <Said text={text} /> },
				{ name: "From", cell: (item) => provenanceWords(item, now) },
				{
					name: "(Forget)",
					cell: ({ memoryId, text }) => (
						<Button
							class="quiet"
							aria-label={`Forget: ${text.slice(0, FORGET_CHARS_MAX)}`}
							disabled={forgetting !== undefined}
							onClick={() => actions.forget(memoryId)}
							text={forgetting === memoryId ? "Forgetting…" : "Forget"}
						/>
					),
				},
			]}
		/>
	);
}
