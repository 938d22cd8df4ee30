/** One platform of the lab: its screen, the progress of the delivery, buttons that inject faults, and the log of calls. */

import type { LabCallJson, LabChannelJson, LabFaultKind, LabMessageJson } from "@nexus-stream/protocol/api";
import type { ComponentChildren } from "preact";
import { ChannelMark, channelName, confirmedOf, MODE_WORDS } from "../adapters/channels.tsx";
import { formatRoute } from "../app/route.ts";
import { Answer, Dots, Verified } from "../chat/view/answer.tsx";
import { outcomeOf } from "../chat/words.ts";
import { Countdown, useNow } from "../ui/clock.tsx";
import { Button, Icon } from "../ui/element.tsx";
import { plural } from "../ui/format.ts";
import { FigureTable } from "../ui/list-page.tsx";
import { Status, type Words } from "../ui/status.tsx";
import { useEndFollower } from "../ui/stick.ts";
import { cardWords, FAULTS, isOpen, type LabView, mannerOf, outcomeNote, type PlatformPause, pauseOf } from "./lab.ts";
import type { LabActions } from "./lab-feed.ts";
import { PlatformText } from "./platform-text.tsx";

interface LabCardProps {
	row: LabChannelJson;
	lab: LabView;
	/** The length of the answer so far. */
	length: number;
	actions: LabActions;
}

export function LabCard({ row, lab, length, actions }: LabCardProps) {
	const { channel, messages, draft, delivery } = row;
	const name = channelName(channel);
	const pause = pauseOf(row, lab.state?.now ?? 0);
	const note = outcomeNote(row, length);
	return (
		<section
			class="box lab-card"
			data-channel={channel}
			data-manner={mannerOf(channel)}
			data-state={row.state}
			aria-label={name}
		>
			<CardHead channel={channel} note={row.mode && MODE_WORDS[row.mode]}>
				<Status words={cardWords(row, lab.state?.now ?? 0)} />
			</CardHead>
			<Screen of={messages} draft={draft?.text} typing={row.typing}>
				{delivery && <div class="lab-asked">{lab.text}</div>}
				{!delivery && messages.length === 0 && (
					<p class="lab-blank">{row.ready ? "The answer will appear here." : "Its adapter is being started."}</p>
				)}
				{messages.map((message, index) => (
					<Bubble key={message.id} message={message} open={isOpen(row, index)} channel={channel}>
						<Buttons message={message} channel={channel} actions={actions} />
					</Bubble>
				))}
				{draft && <Bubble message={draft} open draft channel={channel} />}
				{row.typing && (
					<div class="lab-typing" role="img" aria-label={`${name} shows a typing indicator`}>
						<Dots />
					</div>
				)}
			</Screen>
			<div class="row lab-pause">
				<Countdown until={row.rate_limited_until} skewMs={lab.skewMs} label="Rate limited, resumes in" />
				{pause && <Pause pause={pause} skewMs={lab.skewMs} />}
			</div>
			<Cursor row={row} length={length} />
			{note !== undefined && <p class="error lab-error">{note}</p>}
			<Faults channel={channel} onFault={(kind) => actions.fault(channel, kind)} />
			<Calls calls={row.calls} total={row.calls_total} name={name} />
		</section>
	);
}

function Faults({ channel, onFault }: { channel: string; onFault(kind: LabFaultKind): void }) {
	const name = channelName(channel);
	return (
		<fieldset class="row wrap lab-faults">
			<legend class="sr">Have {name} misbehave</legend>
			<span aria-hidden="true">Break the next call</span>
			{FAULTS.map(({ kind, label, title }) => (
				<Button
					key={kind}
					data-fault={kind}
					title={`${name} ${title}`}
					aria-label={`${name} ${title}`}
					onClick={() => onFault(kind)}
					text={label}
				/>
			))}
		</fieldset>
	);
}

const CardHead = (props: { channel: string; note?: string | undefined; children: ComponentChildren }) => (
	<header class="row lab-card-head">
		<ChannelMark channel={props.channel} />
		<div>
			<h2>{channelName(props.channel)}</h2>
			{props.note !== undefined && <p class="lab-mode">{props.note}</p>}
		</div>
		{props.children}
	</header>
);

/** The same run with every token: the reference for the other cards. */
export function WebCard({ lab, length }: { lab: LabView; length: number }) {
	const { web, text, runId } = lab;
	const outcome = web && outcomeOf(web, undefined);
	const words: Words = outcome
		? { tone: outcome.tone, text: outcome.title }
		: { tone: web ? "live" : "quiet", text: web ? "Writing…" : "Ready" };
	return (
		<section class="box lab-card" data-channel="web" data-manner="bubbles" aria-label={channelName("web")}>
			<CardHead channel="web" note="Every token">
				<Status words={words} />
			</CardHead>
			<Screen of={web}>
				{web ? <div class="lab-asked">{text}</div> : <p class="lab-blank">The answer will appear here.</p>}
				{web && <Answer view={web} />}
			</Screen>
			<div class="row lab-pause" />
			<div class="lab-cursor">
				<progress max={Math.max(1, length)} value={length} aria-label="Length of the answer" />
				<p class="lab-facts">
					<span>{plural(length, "character")}</span>
					{web && <span>{plural(web.messages.length, "message")}</span>}
				</p>
			</div>
			<p class="lab-web-note">What the agent writes, as it writes it: the reference for the other cards.</p>
			<footer class="row lab-web-foot">
				{runId === undefined ? (
					<span class="note">No run yet</span>
				) : (
					<a class="mark inspect" href={formatRoute({ name: "run", runId })}>
						<Icon name="pulse" /> Inspect the run
					</a>
				)}
				{web && <Verified view={web} />}
			</footer>
		</section>
	);
}

interface ScreenProps {
	/** The content; the box scrolls to its end when it changes. */
	of: unknown;
	draft?: string | undefined;
	typing?: boolean;
	children: ComponentChildren;
}

/** Follows its end while that is in view. */
function Screen({ of, draft, typing, children }: ScreenProps) {
	const { box, onScroll } = useEndFollower<HTMLDivElement>([of, draft, typing]);
	return (
		// biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
		<div class="lab-screen" ref={box} onScroll={onScroll} tabIndex={0}>
			{children}
		</div>
	);
}

const SECOND_MS = 1000;

/** Why a platform pauses, and for how long already. */
function Pause({ pause, skewMs }: { pause: PlatformPause; skewMs: number }) {
	const now = useNow(SECOND_MS, true);
	const seconds = Math.floor(Math.max(0, now - (pause.since - skewMs)) / SECOND_MS);
	return (
		<span class="countdown" data-kind="waited">
			<Icon name="pause" /> {pause.text} {seconds > 0 && <b>{seconds} s</b>}
		</span>
	);
}

interface BubbleProps {
	message: LabMessageJson;
	open: boolean;
	draft?: boolean;
	channel: string;
	children?: ComponentChildren;
}

/** The buttons of a question, pressed on behalf of a person on the platform. */
function Buttons({ message, channel, actions }: { message: LabMessageJson; channel: string; actions: LabActions }) {
	if (!message.buttons || message.buttons.length === 0) return null;
	return (
		<fieldset class="lab-buttons">
			<legend class="sr">Answer on {channelName(channel)}</legend>
			{message.buttons.map((label) => (
				<Button key={label} onClick={() => actions.press(channel, message.id, label)} text={label} />
			))}
		</fieldset>
	);
}

const Bubble = ({ message, open, draft = false, channel, children }: BubbleProps) => (
	<div class="lab-message" data-open={open} data-draft={draft}>
		{channel === "gmail" && (
			<p class="lab-mail-head">
				<strong>Re: A question</strong>
				<span>to Ann</span>
			</p>
		)}
		{message.text !== "" && (
			<div class="lab-bubble">
				<PlatformText message={message} />
			</div>
		)}
		{message.files?.map((name, index) => (
			<span key={index} class="lab-file">
				<Icon name="clip" /> {name}
			</span>
		))}
		{children}
		<span class="lab-stamp">
			{draft ? "draft" : timeText(message.created_at)}
			{message.edits > 0 && ` · ${open ? "editing, " : ""}${plural(message.edits, draft ? "change" : "edit")}`}
			{open && message.edits === 0 && " · editing"}
		</span>
	</div>
);

const timeText = (at: number): string =>
	new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function Cursor({ row, length }: { row: LabChannelJson; length: number }) {
	const { delivery, messages, draft } = row;
	const reach = delivery ? confirmedOf(delivery) : 0;
	const edits = messages.reduce((sum, message) => sum + message.edits, draft?.edits ?? 0);
	return (
		<div class="lab-cursor">
			<progress
				max={Math.max(1, length)}
				value={Math.min(reach, length)}
				aria-label="How much of the answer the platform has confirmed"
			/>
			<p class="lab-facts">
				<span title="Characters that the platform has confirmed, of those that the agent has written">
					{Math.min(reach, length).toLocaleString("en")}/{length.toLocaleString("en")} confirmed
				</span>
				<span>{plural(messages.length, "message")}</span>
				{edits > 0 && <span>{plural(edits, "edit")}</span>}
			</p>
		</div>
	);
}

function Calls({ calls, total, name }: { calls: readonly LabCallJson[]; total: number; name: string }) {
	const first = calls[0]?.at ?? 0;
	return (
		<details class="lab-calls">
			<summary>{plural(total, "platform call")}</summary>
			<FigureTable
				frame="lab-calls-box"
				label={`Calls to ${name}`}
				rows={calls.toReversed()}
				keyOf={(_, index) => calls.length - index}
				dataOf={({ status }) => ({ "data-bad": status === 0 || status >= 400 })}
				columns={[
					{ name: "At", cell: ({ at }) => `+${((at - first) / 1000).toFixed(1)} s` },
					{ name: "Call", cell: ({ call }) => <code>{call}</code> },
					{ name: "Took", cell: ({ ms }) => (ms === undefined ? "–" : `${ms} ms`) },
					{ name: "Status", cell: ({ status }) => (status === 0 ? "no answer" : status) },
				]}
			/>
		</details>
	);
}
