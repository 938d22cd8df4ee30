/** The adapters page: accounts and their processes, deliveries and how far they are, what came in, and who waits to be let in. */

import type { EventJson, PairingJson } from "@nexus-stream/protocol";
import type { WebApp } from "../app/app.ts";
import { ageText } from "../app/words.ts";
import { Head } from "../ui/head.tsx";
import { Scrollable } from "../ui/scrollable.tsx";
import { Accounts } from "./accounts.tsx";
import { type AdaptersView, inboundOf, waitingPairings } from "./adapters.ts";
import { ChannelMark, Notice, Status } from "./channel-parts.tsx";
import { channelName, dispositionWords } from "./channels.ts";
import { Deliveries, RunLink } from "./deliveries.tsx";

export function Adapters({ adapters, app }: { adapters: AdaptersView; app: WebApp }) {
	const { phase, failure, notice } = adapters;
	const now = Date.now() + adapters.skewMs;
	return (
		<div class="adapters">
			<Head app={app} title="Adapters">
				<span class="link-state" data-state={failure === undefined ? "live" : "reconnecting"}>
					<i /> {failure === undefined ? "Live" : "Trying again…"}
				</span>
			</Head>
			<div class="scroll">
				<div class="adapters-body">
					{failure !== undefined && <Notice tone="bad">{failure}</Notice>}
					{notice && <Notice tone={notice.tone}>{notice.text}</Notice>}
					{phase === "loading" && <p class="note">Loading…</p>}
					{phase === "ready" && (
						<>
							<Pairings pairings={waitingPairings(adapters.pairings, now)} adapters={adapters} app={app} />
							<Accounts adapters={adapters} app={app} />
							<Deliveries adapters={adapters} app={app} now={now} />
							<Inbound events={inboundOf(adapters.events)} now={now} />
						</>
					)}
				</div>
			</div>
		</div>
	);
}

interface PairingsProps {
	pairings: readonly PairingJson[];
	adapters: AdaptersView;
	app: WebApp;
}

function Pairings({ pairings, adapters, app }: PairingsProps) {
	if (pairings.length === 0) return null;
	return (
		<section class="pairings" aria-labelledby="pairings-title">
			<h2 id="pairings-title">Waiting to be let in</h2>
			<ul>
				{pairings.map(({ code, channel, account, sender, sender_name: name }) => (
					<li key={code}>
						<ChannelMark channel={channel} />
						<span class="pairing-who">
							<strong>{name ?? sender}</strong>
							<span class="note">
								{name !== undefined && `${sender} · `}
								{channelName(channel)} · {account}
							</span>
						</span>
						<span class="pairing-do">
							<code class="pairing-code">{code}</code>
							<button
								type="button"
								class="primary"
								disabled={adapters.approving !== undefined}
								onClick={() => app.adapters()?.approve(code)}
							>
								{adapters.approving === code ? "Letting in…" : "Let in"}
							</button>
						</span>
					</li>
				))}
			</ul>
			<p class="note">Let in only whom you know: compare the code with the one the person was told.</p>
		</section>
	);
}

function Inbound({ events, now }: { events: readonly EventJson[]; now: number }) {
	return (
		<section aria-labelledby="inbound-title">
			<h2 id="inbound-title">Messages that came in</h2>
			{events.length === 0 ? (
				<p class="blank">None yet. Every message is listed here, with what became of it.</p>
			) : (
				<Scrollable as="div" class="list-frame" label="Messages that came in">
					<table class="list inbound">
						<thead>
							<tr>
								<th>From</th>
								<th>Message</th>
								<th>What became of it</th>
								<th>Age</th>
							</tr>
						</thead>
						<tbody>
							{events.map((event) => (
								<InboundRow key={event.event_id} event={event} now={now} />
							))}
						</tbody>
					</table>
				</Scrollable>
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
				<div class="state-line">
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
