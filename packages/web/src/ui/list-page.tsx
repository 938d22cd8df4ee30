/** The frame of a page: its head, its notices and its scrolling body; and the table of a list. */

import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import { Icon } from "./icon.tsx";
import type { PageView } from "./page.ts";
import { Scrollable } from "./scrollable.tsx";
import { LinkBadge, Notice, type NoticeWords } from "./status.tsx";

/** Opens the drawer with the sessions; provided by the shell. */
export const OpenDrawer = createContext<() => void>(() => {});

export interface HeadProps {
	title: ComponentChildren;
	/** A link to the page above this one. */
	back?: { href: string; label: string };
	children?: ComponentChildren;
}

export const Head = ({ title, back, children }: HeadProps) => (
	<header class="row head">
		<button type="button" class="round open-drawer" onClick={useContext(OpenDrawer)} aria-label="Show the menu">
			<Icon name="menu" />
		</button>
		{back && (
			<a class="quiet back" href={back.href}>
				<Icon name="left" /> <span>{back.label}</span>
			</a>
		)}
		<h1 class="cut" dir="auto">
			{title}
		</h1>
		{children}
	</header>
);

export interface PageFrameProps {
	/** Names the page for its style sheet. */
	class: string;
	head: ComponentChildren;
	children: ComponentChildren;
}

export const PageFrame = ({ class: name, head, children }: PageFrameProps) => (
	<div class={`page-frame ${name}`}>
		{head}
		<div class="scroll">
			<div class="page-body">{children}</div>
		</div>
	</div>
);

export interface ListView extends PageView {
	/** The lists were read at least once. */
	readonly isLoaded: boolean;
	readonly notice?: NoticeWords;
}

/** A page of lists that are polled: live while the loads succeed. */
export const ListPage = ({ title, view, children }: { title: string; view: ListView; children: ComponentChildren }) => (
	<PageFrame
		class="lists"
		head={
			<Head title={title}>
				{view.failure === undefined ? (
					<LinkBadge state="live" label="Live" />
				) : (
					<LinkBadge state="reconnecting" label="Trying again…" />
				)}
			</Head>
		}
	>
		<Notices view={view} />
		{view.isLoaded && children}
	</PageFrame>
);

/** The last failure, the result of the last action, and whether the first load is under way. */
export const Notices = ({ view: { failure, notice, isLoaded } }: { view: ListView }) => (
	<>
		{failure !== undefined && <Notice tone="bad">{failure}</Notice>}
		{notice && <Notice tone={notice.tone}>{notice.text}</Notice>}
		{!isLoaded && failure === undefined && <p class="note">Loading…</p>}
	</>
);

export interface TableProps {
	label: string;
	class?: string;
	/** Headings of the columns; one in brackets is only read aloud. */
	columns: readonly string[];
	children: ComponentChildren;
}

/** A table that becomes a list of cards on a narrow screen. */
export const ListTable = ({ label, class: name = "", columns, children }: TableProps) => (
	<Scrollable as="div" class="box list-frame" label={label}>
		<table class={`list ${name}`.trimEnd()}>
			<thead>
				<tr>
					{columns.map((column) => (
						<th key={column}>{column.startsWith("(") ? <span class="sr">{column.slice(1, -1)}</span> : column}</th>
					))}
				</tr>
			</thead>
			<tbody>{children}</tbody>
		</table>
	</Scrollable>
);

export interface CancelProps {
	label: string;
	isCanceling: boolean;
	onCancel(): void;
}

export const CancelButton = ({ label, isCanceling, onCancel }: CancelProps) => (
	<button type="button" class="quiet" aria-label={label} disabled={isCanceling} onClick={onCancel}>
		{isCanceling ? "Canceling…" : "Cancel"}
	</button>
);
