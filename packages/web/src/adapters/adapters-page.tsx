/** The adapters page: pairings to approve, accounts with their processes, deliveries with their progress, and received messages. */

import type { EventJson } from "@nexus-stream/protocol/api";
import { Button } from "../ui/element.tsx";
import { ageText } from "../ui/format.ts";
import { ListPage, ListTable, Said, Section } from "../ui/list-page.tsx";
import { Status } from "../ui/status.tsx";
import { Accounts } from "./accounts.tsx";
import { type AdaptersPage, inboundOf, waitingPairings } from "./adapters.ts";
import { ChannelMark, channelName, dispositionWords, RunLink } from "./channels.tsx";
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
		<Section class="pairings" id="pairings-title" title="Waiting for approval">
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
							<Button
								class="primary"
								disabled={approving !== undefined}
								onClick={() => page.actions.approve(code)}
								text={approving === code ? "Approving…" : "Approve"}
							/>
						</span>
					</li>
				))}
			</ul>
			<p class="note">Approve only people you know: compare the code with the one the person received.</p>
		</Section>
	);
}

const Inbound = ({ events, now }: { events: readonly EventJson[]; now: number }) => (
	<Section id="inbound-title" title="Received messages">
		{events.length === 0 ? (
			<p class="blank">None yet. Every message is listed here, with what became of it.</p>
		) : (
			<ListTable
				label="Received messages"
				class="inbound"
				rows={events}
				keyOf={(event) => event.event_id}
				dataOf={({ disposition }) => ({ "data-disposition": disposition })}
				columns={[
					{ name: "From", cell: (event) => <Sender event={event} /> },
					{ name: "Message", class: "said", cell: ({ text }) => <Said text={text} /> },
					{
						name: "What became of it",
						cell: (event) => (
							<div class="row wrap state-line">
								<Status words={dispositionWords(event)} />
								<RunLink runId={event.run_id} />
							</div>
						),
					},
					{ name: "Age", class: "figure", cell: (event) => ageText(event.received_at, now) },
				]}
			/>
		)}
	</Section>
);

const Sender = ({ event: { channel = "web", account, sender, sender_name: name } }: { event: EventJson }) => (
	<span class="with-mark">
		<ChannelMark channel={channel} />
		<span>
			{name ?? sender ?? channelName(channel)}
			{account !== undefined && <small>{account}</small>}
		</span>
	</span>
);
