/** The adapters page: pairings to approve, accounts with their processes, deliveries with their progress, and received messages. */

import type { EventJson } from "@nexus-stream/protocol";
import { ageText } from "../ui/format.ts";
import { ListPage, ListTable } from "../ui/list-page.tsx";
import { Status } from "../ui/status.tsx";
import { Accounts } from "./accounts.tsx";
import { type AdaptersPage, inboundOf, waitingPairings } from "./adapters.ts";
import { ChannelMark, RunLink } from "./channel-parts.tsx";
import { channelName, dispositionWords } from "./channels.ts";
import { Deliveries } from "./deliveries.tsx";

export { openAdapters } from "./adapters.ts";

export function Adapters({ page }: { page: AdaptersPage }) {
	const view = page.view.value;
	const now = Date.now() + view.skewMs;
	return (
		<ListPage title="Adapters" view={view}>
			<Pairings page={page} now={now} />
			<Accounts page={page} />
			<Deliveries page={page} now={now} />
			<Inbound events={inboundOf(view.events)} now={now} />
		</ListPage>
	);
}

function Pairings({ page, now }: { page: AdaptersPage; now: number }) {
	const { pairings: all, approving } = page.view.value;
	const pairings = waitingPairings(all, now);
	if (pairings.length === 0) return null;
	return (
		<section class="pairings" aria-labelledby="pairings-title">
			<h2 id="pairings-title">Waiting for approval</h2>
			<ul>
				{pairings.map(({ code, channel, account, sender, sender_name: name }) => (
					<li class="row wrap" key={code}>
						<ChannelMark channel={channel} />
						<span class="pairing-who">
							<strong>{name ?? sender}</strong>
							<span class="note">
								{name !== undefined && `${sender} · `}
								{channelName(channel)} · {account}
							</span>
						</span>
						<span class="row pairing-do">
							<code class="pairing-code">{code}</code>
							<button
								type="button"
								class="primary"
								disabled={approving !== undefined}
								onClick={() => page.actions.approve(code)}
							>
								{approving === code ? "Approving…" : "Approve"}
							</button>
						</span>
					</li>
				))}
			</ul>
			<p class="note">Approve only people you know: compare the code with the one the person received.</p>
		</section>
	);
}

function Inbound({ events, now }: { events: readonly EventJson[]; now: number }) {
	return (
		<section aria-labelledby="inbound-title">
			<h2 id="inbound-title">Received messages</h2>
			{events.length === 0 ? (
				<p class="blank">None yet. Every message is listed here, with what became of it.</p>
			) : (
				<ListTable label="Received messages" class="inbound" columns={["From", "Message", "What became of it", "Age"]}>
					{events.map((event) => (
						<InboundRow key={event.event_id} event={event} now={now} />
					))}
				</ListTable>
			)}
		</section>
	);
}

function InboundRow({ event, now }: { event: EventJson; now: number }) {
	const { channel = "web", account, sender, sender_name: name, run_id: runId } = event;
	return (
		<tr data-disposition={event.disposition}>
			<td data-label="From">
				<span class="with-mark">
					<ChannelMark channel={channel} />
					<span>
						{name ?? sender ?? channelName(channel)}
						{account !== undefined && <small>{account}</small>}
					</span>
				</span>
			</td>
			<td data-label="Message" class="said">
				<span class="said-text" dir="auto">
					{event.text}
				</span>
			</td>
			<td data-label="What became of it">
				<div class="row wrap state-line">
					<Status words={dispositionWords(event)} />
					<RunLink runId={runId} />
				</div>
			</td>
			<td data-label="Age" class="figure">
				{ageText(event.received_at, now)}
			</td>
		</tr>
	);
}
