/** The channel lab: one message, its answer on every platform at once, and buttons to make their lives hard. */

import { useRef, useState } from "preact/hooks";
import { ChannelMark, Notice } from "../adapters/channel-parts.tsx";
import { channelName } from "../adapters/channels.ts";
import type { WebApp } from "../app/app.ts";
import { plural } from "../app/words.ts";
import { labPrompts } from "../chat/prompts.ts";
import { Head } from "../ui/head.tsx";
import { Icon } from "../ui/icon.tsx";
import { chosenOf, isDelivering, type LabView, readiness, sourceLength } from "./lab.ts";
import { LabCard, WebCard } from "./lab-card.tsx";

export interface LabProps {
	lab: LabView;
	/** What answers, once that is known. */
	engine: string | undefined;
	app: WebApp;
}

export function Lab({ lab, engine, app }: LabProps) {
	const { state, failure, notice } = lab;
	const length = sourceLength(lab.web);
	const shown = (state?.channels ?? []).filter(({ channel, delivery }) => !lab.left.has(channel) || delivery);
	return (
		<div class="lab" data-run={state?.run_id}>
			<Head app={app} title="Channel lab" />
			<div class="scroll">
				<div class="lab-body">
					<p class="lab-intro">
						One answer on every platform at once. The adapters are the real ones; the platforms are fakes that keep to
						the documented limits, so nobody is written to.
					</p>
					<LabComposer lab={lab} engine={engine} app={app} />
					{failure !== undefined && (
						<div class="outcome" data-tone="bad" role="alert">
							<Icon name="warn" />
							<span>
								<strong>The lab is not available.</strong> {failure}
							</span>
							<button type="button" class="quiet" onClick={() => app.lab()?.retry()}>
								Try again
							</button>
						</div>
					)}
					<div class="lab-grid">
						<WebCard lab={lab} length={length} />
						{shown.map((row) => (
							<LabCard key={row.channel} row={row} lab={lab} length={length} app={app} />
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

function LabComposer({ lab, engine, app }: LabProps) {
	const presets = labPrompts(engine);
	const [text, setText] = useState(lab.text ?? presets[0]?.text ?? "");
	const field = useRef<HTMLTextAreaElement>(null);
	const live = lab.web !== undefined && !lab.web.final;
	const delivering = isDelivering(lab);
	const busy = lab.isStarting || live || delivering;
	const chosen = chosenOf(lab);
	const may = !busy && text.trim() !== "" && chosen.length > 0 && lab.state !== undefined;
	const run = () => may && app.lab()?.run(text.trim());
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
					{live && (
						<button type="button" class="stop" onClick={() => app.lab()?.stop()}>
							<Icon name="stop" /> <span>Stop</span>
						</button>
					)}
					<button
						type="button"
						class="quiet lab-ask"
						title="Puts the text to the platforms as a question, with buttons where they have them"
						disabled={!may}
						onClick={() => app.lab()?.ask(text.trim())}
					>
						Ask it
					</button>
					<button type="submit" class="run" disabled={!may}>
						<Icon name="play" /> <span>{lab.isStarting ? "Starting…" : busy ? "Running…" : "Run"}</span>
					</button>
				</div>
			</div>
			<ul class="lab-presets" aria-label="Messages to try">
				{presets.map((preset) => (
					<li key={preset.text}>
						<button
							type="button"
							title={preset.text}
							onClick={() => {
								setText(preset.text);
								field.current?.focus();
							}}
						>
							{preset.title}
						</button>
					</li>
				))}
			</ul>
			<Choice lab={lab} app={app} busy={busy} />
		</form>
	);
}

function Choice({ lab, app, busy }: { lab: LabView; app: WebApp; busy: boolean }) {
	const { ready, chosen } = readiness(lab);
	return (
		<fieldset class="lab-choice" disabled={busy}>
			<legend class="sr">Platforms that take part</legend>
			{(lab.state?.channels ?? []).map(({ channel, ready: isReady }) => (
				<label key={channel} data-ready={isReady}>
					<input
						type="checkbox"
						checked={!lab.left.has(channel)}
						onChange={(event) => app.lab()?.choose(channel, event.currentTarget.checked)}
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

/** The beginning and the end of a run on the platforms, for those who hear the page. */
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
