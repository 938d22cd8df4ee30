/** The channel lab: one message, its answer on every platform at once, and buttons that inject faults. */

import { useRef, useState } from "preact/hooks";
import { ChannelMark, channelName } from "../adapters/channels.tsx";
import { labPrompts, type Prompt } from "../chat/words.ts";
import { Button, Icon } from "../ui/element.tsx";
import { plural } from "../ui/format.ts";
import { Head } from "../ui/list-page.tsx";
import { FailureNotice, Notice } from "../ui/status.tsx";
import { chosenOf, isDelivering, type LabView, readiness, sourceLength } from "./lab.ts";
import { LabCard, WebCard } from "./lab-card.tsx";
import type { LabActions, LabPage } from "./lab-feed.ts";

export { openLab } from "./lab-feed.ts";

export interface LabProps {
	page: LabPage;
	/** The engine that answers; undefined until the daemon has named it. */
	engine: string | undefined;
}

export function Lab({ page: { view, actions }, engine }: LabProps) {
	const lab = view.value;
	const { state, failure, notice } = lab;
	const length = sourceLength(lab.web);
	const shown = (state?.channels ?? []).filter(({ channel, delivery }) => !lab.excluded.has(channel) || delivery);
	return (
		<div class="page-frame lab" data-run={state?.run_id}>
			<Head title="Channel lab" />
			<div class="scroll">
				<div class="page-body">
					<p class="lab-intro">
						One answer on every platform at once. The adapters are the real ones; the platforms are fakes that keep to
						the documented limits, so no real person receives a message.
					</p>
					<LabComposer lab={lab} engine={engine} actions={actions} />
					{failure !== undefined && (
						<FailureNotice title="The lab is not available." onRetry={actions.retry}>
							{failure}
						</FailureNotice>
					)}
					<div class="lab-grid">
						<WebCard lab={lab} length={length} />
						{shown.map((row) => (
							<LabCard key={row.channel} row={row} lab={lab} length={length} actions={actions} />
						))}
						{!state && failure === undefined && <p class="note lab-wait">Starting the platforms…</p>}
					</div>
				</div>
			</div>
			{notice && (
				<div class="lab-toast">
					<Notice tone={notice.tone}>{notice.text}</Notice>
				</div>
			)}
			<LabAnnouncer lab={lab} />
		</div>
	);
}

interface ComposerProps {
	lab: LabView;
	engine: string | undefined;
	actions: LabActions;
}

function LabComposer({ lab, engine, actions }: ComposerProps) {
	const presets = labPrompts(engine);
	const [text, setText] = useState(lab.text ?? presets[0]?.text ?? "");
	const field = useRef<HTMLTextAreaElement>(null);
	const isLive = lab.web !== undefined && !lab.web.final;
	const isBusy = lab.isStarting || isLive || isDelivering(lab);
	const isReady = !isBusy && text.trim() !== "" && chosenOf(lab).length > 0 && lab.state !== undefined;
	const run = () => isReady && actions.run(text.trim());
	const onKeyDown = (event: KeyboardEvent) => {
		if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
		event.preventDefault();
		run();
	};
	return (
		<form
			class="lab-form"
			onSubmit={(event) => {
				event.preventDefault();
				run();
			}}
		>
			<div class="composer">
				<textarea
					ref={field}
					rows={1}
					value={text}
					onInput={(event) => setText(event.currentTarget.value)}
					onKeyDown={onKeyDown}
					aria-label="Message for the lab"
					dir="auto"
					enterkeyhint="send"
				/>
				<div class="composer-buttons">
					{isLive && (
						<button type="button" class="stop" onClick={actions.stop}>
							<Icon name="stop" /> <span>Stop</span>
						</button>
					)}
					<Button
						class="quiet lab-ask"
						title="Puts the text to the platforms as a question, with buttons where they have them"
						disabled={!isReady}
						onClick={() => actions.ask(text.trim())}
						text="Ask it"
					/>
					<button type="submit" class="primary run" disabled={!isReady}>
						<Icon name="play" /> <span>{lab.isStarting ? "Starting…" : isBusy ? "Running…" : "Run"}</span>
					</button>
				</div>
			</div>
			<Presets
				presets={presets}
				onPick={(preset) => {
					setText(preset);
					field.current?.focus();
				}}
			/>
			<Choice lab={lab} isBusy={isBusy} onChoose={actions.choose} />
		</form>
	);
}

const Presets = ({ presets, onPick }: { presets: readonly Prompt[]; onPick(text: string): void }) => (
	<ul class="lab-presets" aria-label="Messages to try">
		{presets.map(({ title, text }) => (
			<li key={text}>
				<Button title={text} onClick={() => onPick(text)} text={title} />
			</li>
		))}
	</ul>
);

function Choice({ lab, isBusy, onChoose }: { lab: LabView; isBusy: boolean; onChoose: LabActions["choose"] }) {
	const { ready, chosen } = readiness(lab);
	return (
		<fieldset class="row wrap lab-choice" disabled={isBusy}>
			<legend class="sr">Platforms that take part</legend>
			{(lab.state?.channels ?? []).map(({ channel, ready: isReady }) => (
				<label key={channel} data-ready={isReady}>
					<input
						type="checkbox"
						checked={!lab.excluded.has(channel)}
						onChange={(event) => onChoose(channel, event.currentTarget.checked)}
					/>
					<ChannelMark channel={channel} /> {channelName(channel)}
				</label>
			))}
			<span class="note" role="status">
				{ready < chosen && `${ready} of ${plural(chosen, "adapter")} started`}
			</span>
		</fieldset>
	);
}

/** Announces the begin and the end of a delivery to screen readers. */
function LabAnnouncer({ lab }: { lab: LabView }) {
	const rows = (lab.state?.channels ?? []).filter(({ delivery }) => delivery);
	const done = rows.filter(({ state }) => state === "complete").length;
	const text =
		rows.length === 0 || lab.runId === undefined
			? ""
			: isDelivering(lab)
				? "The answer is being delivered."
				: `Delivered whole on ${done} of ${plural(rows.length, "platform")}.`;
	return (
		<div class="sr" role="status" aria-live="polite">
			{text || null}
		</div>
	);
}
