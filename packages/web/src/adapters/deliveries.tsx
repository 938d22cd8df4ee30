/** Deliveries with their cursors: which part of which answer is in which message of which platform. */

import type { DeliveryJson, DeliveryState, SentMessageJson } from "@nexus-stream/protocol/api";
import { ageText, plural } from "../ui/format.ts";
import { ListTable } from "../ui/list-page.tsx";
import { Status } from "../ui/status.tsx";
import { type AdaptersPage, type AdaptersView, channelsOf, type DeliveryFilter } from "./adapters.ts";
import { ChannelMark, channelName, confirmedOf, DELIVERY_WORDS, errorWords, MODE_WORDS, RunLink } from "./channels.tsx";

const STATES: readonly DeliveryState[] = ["active", "complete", "failed", "unknown", "stale", "damaged"];

export function Deliveries({ page, now }: { page: AdaptersPage; now: number }) {
	const view = page.view.value;
	const { deliveries, filter } = view;
	const isFiltered = filter.state !== undefined || filter.channel !== undefined;
	return (
		<section aria-labelledby="deliveries-title">
			<div class="row wrap section-head">
				<h2 id="deliveries-title">Deliveries</h2>
				<Filters view={view} onChange={page.actions.filter} />
			</div>
			{deliveries.length === 0 ? (
				<p class="blank">
					{isFiltered ? "None like that." : "None yet. An answer that goes to a platform is listed here."}
				</p>
			) : (
				<DeliveriesTable deliveries={deliveries} now={now} />
			)}
		</section>
	);
}

function Filters({ view, onChange }: { view: AdaptersView; onChange(filter: DeliveryFilter): void }) {
	const { filter } = view;
	// The chosen channel remains an option when the filter leaves no delivery of it.
	const channels = new Set(channelsOf(view.accounts, view.deliveries));
	if (filter.channel) channels.add(filter.channel);
	return (
		<div class="filters">
			<Choice
				label="State"
				any="Any state"
				value={filter.state}
				options={STATES.map((state) => [state, DELIVERY_WORDS[state].text])}
				onChange={(state) => onChange({ ...filter, state: state as DeliveryState | undefined })}
			/>
			<Choice
				label="Channel"
				any="Any channel"
				value={filter.channel}
				options={[...channels].map((channel) => [channel, channelName(channel)])}
				onChange={(channel) => onChange({ ...filter, channel })}
			/>
		</div>
	);
}

interface ChoiceProps {
	label: string;
	/** The option that filters nothing. */
	any: string;
	value: string | undefined;
	options: readonly (readonly [value: string, text: string])[];
	onChange(value: string | undefined): void;
}

const Choice = ({ label, any, value = "", options, onChange }: ChoiceProps) => (
	<select aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value || undefined)}>
		<option value="">{any}</option>
		{options.map(([option, text]) => (
			<option key={option} value={option}>
				{text}
			</option>
		))}
	</select>
);

export const DeliveriesTable = ({ deliveries, now }: { deliveries: readonly DeliveryJson[]; now: number }) => (
	<ListTable
		label="Deliveries"
		class="deliveries"
		rows={deliveries}
		keyOf={(delivery) => delivery.delivery_id}
		dataOf={({ delivery_id: id, state }) => ({ "data-delivery": id, "data-state": state })}
		columns={[
			{ name: "To", cell: (delivery) => <Receiver delivery={delivery} /> },
			{ name: "State", cell: (delivery) => <State delivery={delivery} /> },
			{ name: "Mode", class: "figure", cell: ({ mode }) => (mode ? MODE_WORDS[mode] : "–") },
			{ name: "Cursor", class: "figure", cell: (delivery) => <Cursor delivery={delivery} /> },
			{ name: "Messages", cell: ({ messages }) => <Messages messages={messages} /> },
			{ name: "Age", class: "figure", cell: (delivery) => ageText(delivery.created_at, now) },
		]}
	/>
);

const Receiver = ({ delivery: { channel, account, target } }: { delivery: DeliveryJson }) => (
	<span class="with-mark">
		<ChannelMark channel={channel} />
		<span>
			{channelName(channel)}
			<small>
				{account} · {target.to}
			</small>
		</span>
	</span>
);

const State = ({ delivery: { state, run_id: runId, error } }: { delivery: DeliveryJson }) => (
	<>
		<div class="row wrap state-line">
			<Status words={DELIVERY_WORDS[state]} />
			<RunLink runId={runId} />
		</div>
		{error !== undefined && <p class="error">{errorWords(error)}</p>}
	</>
);

function Cursor({ delivery }: { delivery: DeliveryJson }) {
	const reach = confirmedOf(delivery);
	return (
		<>
			{delivery.position.toLocaleString("en")}
			{reach > delivery.position && <small>shown to {reach.toLocaleString("en")}</small>}
		</>
	);
}

const MESSAGE_WORDS: Readonly<Record<SentMessageJson["state"], string>> = {
	intended: "being created",
	open: "being edited",
	sent: "sent",
	unknown: "may exist",
	failed: "not delivered",
};

function Messages({ messages }: { messages: readonly SentMessageJson[] }) {
	if (messages.length === 0) return <>–</>;
	return (
		<details class="sent-messages">
			<summary>{plural(messages.length, "message")}</summary>
			<ol>
				{messages.map(({ ordinal, message_id: id, from, to, shown, state, error: why }) => (
					<li key={ordinal} data-state={state}>
						<code>{id ?? "no id yet"}</code>
						<span class="sent-state">
							{from}–{to ?? shown ?? "…"} · {MESSAGE_WORDS[state]}
						</span>
						{why !== undefined && <span class="error">{errorWords(why)}</span>}
					</li>
				))}
			</ol>
		</details>
	);
}
