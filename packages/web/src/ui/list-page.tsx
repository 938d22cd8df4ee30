/** The frame of a page: its head, its notices and its scrolling body; and the table of a list. */

import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import { Button, type ButtonProps, Icon, RoundButton, Scrollable } from "./element.tsx";
import type { PageView } from "./page.ts";
import { LinkBadge, Notice } from "./status.tsx";

/** Opens the drawer with the sessions; provided by the shell. */
export const OpenDrawer = createContext<() => void>(() => {});

interface HeadProps {
	title: ComponentChildren;
	/** A link to the page above this one. */
	back?: { href: string; label: string };
	children?: ComponentChildren;
}

export const Head = ({ title, back, children }: HeadProps) => (
	<header class="row head">
		<RoundButton class="open-drawer" label="Show the menu" icon="menu" onClick={useContext(OpenDrawer)} />
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

interface PageFrameProps {
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
}

const LIVE = { state: "live", label: "Live" };
const TRYING = { state: "reconnecting", label: "Trying again…" };

/** A page of lists that are polled: live while the loads succeed. */
export const ListPage = ({ title, view, children }: { title: string; view: ListView; children: ComponentChildren }) => (
	<PageFrame
		class="lists"
		head={
			<Head title={title}>
				<LinkBadge {...(view.failure === undefined ? LIVE : TRYING)} />
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

interface Column<Row> {
	/** The heading; one in brackets is only read aloud. */
	readonly name: string;
	readonly class?: string;
	cell(row: Row): ComponentChildren;
}

interface TableProps<Row> {
	label: string;
	class?: string;
	rows: readonly Row[];
	keyOf(row: Row, index: number): string | number;
	/** Attributes of the row's element. */
	dataOf?(row: Row): Readonly<Record<`data-${string}`, string | boolean>>;
	columns: readonly Column<NoInfer<Row>>[];
}

/** A table that becomes a list of cards on a narrow screen. */
export const ListTable = <Row,>({ class: name = "", ...table }: TableProps<Row>) => (
	<FigureTable frame="list-frame box" class={`list ${name}`.trimEnd()} {...table} />
);

/** A table that scrolls on a narrow screen. `frame`: the class of the box that scrolls. */
export const FigureTable = <Row,>(props: TableProps<Row> & { frame?: string }) => (
	<Scrollable as="div" class={props.frame ?? "table-frame"} label={props.label}>
		<table class={props.class}>
			<thead>
				<tr>
					{props.columns.map(({ name }) => (
						<th key={name}>{isSilent(name) ? <span class="sr">{name.slice(1, -1)}</span> : name}</th>
					))}
				</tr>
			</thead>
			<tbody>
				{props.rows.map((row, index) => (
					<tr key={props.keyOf(row, index)} {...props.dataOf?.(row)}>
						{props.columns.map(({ name, class: cellClass, cell }) => (
							<td key={name} class={cellClass} data-label={isSilent(name) ? undefined : name}>
								{cell(row)}
							</td>
						))}
					</tr>
				))}
			</tbody>
		</table>
	</Scrollable>
);

const isSilent = (column: string): boolean => column.startsWith("(");

/** A long text in a table: its first lines. */
export const Said = ({ text }: { text: string }) => (
	<span class="said-text" dir="auto">
		{text}
	</span>
);

export const CancelButton = ({ isCanceling, ...button }: Omit<ButtonProps, "text"> & { isCanceling: boolean }) => (
	<Button {...button} disabled={isCanceling} text={isCanceling ? "Canceling…" : "Cancel"} />
);

/** A part of a page under its own heading. `id` names the heading. */
export const Section = (props: { id: string; title: string; class?: string; children: ComponentChildren }) => (
	<section class={props.class} aria-labelledby={props.id}>
		<h2 id={props.id}>{props.title}</h2>
		{props.children}
	</section>
);
