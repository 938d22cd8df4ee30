/** Deliveries with their cursors: which part of which answer is in which message of which platform. */

import type { DeliveryJson, DeliveryState, SentMessageJson } from "@nexus-stream/protocol";
import type { WebApp } from "../app/app.ts";
import { formatRoute } from "../app/route.ts";
import { ageText, plural } from "../app/words.ts";
import { Icon } from "../ui/icon.tsx";
import { Scrollable } from "../ui/scrollable.tsx";
import { type AdaptersView, channelsOf, type DeliveryFilter } from "./adapters.ts";
import { ChannelMark, Status } from "./channel-parts.tsx";
import { channelName, confirmedOf, deliveryWords, errorWords, MODE_WORDS } from "./channels.ts";

const STATES: readonly DeliveryState[] = ["active", "complete", "failed", "unknown", "stale", "damaged"];

export function Deliveries({ adapters, app, now }: { adapters: AdaptersView; app: WebApp; now: number }) {
	const { deliveries, filter } = adapters;
	const filtered = filter.state !== undefined || filter.channel !== undefined;
	return (
		<section aria-labelledby="deliveries-title">
			<div class="section-head">
				<h2 id="deliveries-title">Deliveries</h2>
				<Filters adapters={adapters} onChange={(next) => app.adapters()?.filter(next)} />
			</div>
			{deliveries.length === 0 ? (
				<p class="blank">
					{filtered ? "None like that." : "None yet. An answer that goes to a platform is listed here."}
				</p>
			) : (
				<DeliveriesTable deliveries={deliveries} now={now} />
			)}
		</section>
	);
}

function Filters({ adapters, onChange }: { adapters: AdaptersView; onChange(filter: DeliveryFilter): void }) {
	const { filter } = adapters;
	const { state: _state, ...withoutState } = filter;
	const { channel: _channel, ...withoutChannel } = filter;
	// The chosen channel stays a choice, also when the filter leaves nothing of it.
	const channels = new Set([
		...channelsOf(adapters.accounts, adapters.deliveries),
		...(filter.channel ? [filter.channel] : []),
	]);
	return (
		<div class="filters">
			<select
				aria-label="State"
				value={filter.state ?? ""}
				onChange={({ currentTarget: { value } }) =>
					onChange(value === "" ? withoutState : { ...filter, state: value as DeliveryState })
				}
			>
				<option value="">Any state</option>
				{STATES.map((state) => (
					<option key={state} value={state}>
						{deliveryWords(state).text}
					</option>
				))}
			</select>
			<select
				aria-label="Channel"
				value={filter.channel ?? ""}
				onChange={({ currentTarget: { value } }) =>
					onChange(value === "" ? withoutChannel : { ...filter, channel: value })
				}
			>
				<option value="">Any channel</option>
				{[...channels].map((channel) => (
					<option key={channel} value={channel}>
						{channelName(channel)}
					</option>
				))}
			</select>
		</div>
	);
}

export const DeliveriesTable = ({ deliveries, now }: { deliveries: readonly DeliveryJson[]; now: number }) => (
	<Scrollable as="div" class="list-frame" label="Deliveries">
		<table class="list deliveries">
			<thead>
				<tr>
					<th>To</th>
					<th>State</th>
					<th>Mode</th>
					<th>Cursor</th>
					<th>Messages</th>
					<th>Age</th>
				</tr>
			</thead>
			<tbody>
				{deliveries.map((delivery) => (
					<Row key={delivery.delivery_id} delivery={delivery} now={now} />
				))}
			</tbody>
		</table>
	</Scrollable>
);

function Row({ delivery, now }: { delivery: DeliveryJson; now: number }) {
	const { channel, account, target, state, mode, messages, error, run_id: runId } = delivery;
	const reach = confirmedOf(delivery);
	return (
		<tr data-delivery={delivery.delivery_id} data-state={state}>
			<td data-label="To">
				<span class="with-mark">
					<ChannelMark channel={channel} />
					<span>
						{channelName(channel)}
						<small>
							{account} · {target.to}
						</small>
					</span>
				</span>
			</td>
			<td data-label="State">
				<div class="state-line">
					<Status words={deliveryWords(state)} />
					<RunLink runId={runId} />
				</div>
				{error !== undefined && <p class="account-error">{errorWords(error)}</p>}
			</td>
			<td data-label="Mode" class="figure">
				{mode ? MODE_WORDS[mode] : "–"}
			</td>
			<td data-label="Cursor" class="figure">
				{delivery.position.toLocaleString("en")}
				{reach > delivery.position && <small>shown to {reach.toLocaleString("en")}</small>}
			</td>
			<td data-label="Messages">
				<Messages messages={messages} />
			</td>
			<td data-label="Age" class="figure">
				{ageText(delivery.created_at, now)}
			</td>
		</tr>
	);
}

/** The way to a run in the inspector. A text that was sent by itself belongs to none. */
export const RunLink = ({ runId }: { runId: string | undefined }) =>
	runId?.startsWith("run_") ? (
		<a class="inspect" href={formatRoute({ name: "run", runId })} title={runId}>
			<Icon name="pulse" /> Run
		</a>
	) : null;

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
						{why !== undefined && <span class="account-error">{errorWords(why)}</span>}
					</li>
				))}
			</ol>
		</details>
	);
}
