/** Accounts on chat platforms, each with its processes, its rate limit and the result of its last check. */

import type { AccountJson, AdapterProcessJson } from "@nexus-stream/protocol/api";
import { formatRoute } from "../app/route.ts";
import { Countdown } from "../ui/clock.tsx";
import { Button, Icon } from "../ui/element.tsx";
import { plural } from "../ui/format.ts";
import { Section } from "../ui/list-page.tsx";
import { Status } from "../ui/status.tsx";
import { type AdaptersPage, accountKey, type Health, ownErrorOf } from "./adapters.ts";
import { ChannelMark, channelName, DELIVERY_WORDS, PROCESS_WORDS } from "./channels.tsx";

const VERBS = { monitor: "Listening", stream: "Streaming", send: "Sending" } as const;
type Verb = keyof typeof VERBS;

export function Accounts({ page }: { page: AdaptersPage }) {
	const { accounts } = page.view.value;
	return (
		<Section id="accounts-title" title="Accounts">
			{accounts.length === 0 ? (
				<p class="blank">
					No account yet. <code>nexus adapter add telegram</code> sets one up; the{" "}
					<a href={formatRoute({ name: "lab" })}>channel lab</a> works without any.
				</p>
			) : (
				<ul class="accounts">
					{accounts.map((account) => (
						<Account key={accountKey(account)} account={account} page={page} />
					))}
				</ul>
			)}
		</Section>
	);
}

function Account({ account, page }: { account: AccountJson; page: AdaptersPage }) {
	const { channel, processes, rate } = account;
	const { health: checks, skewMs } = page.view.value;
	const lastError = ownErrorOf(account);
	const health = checks[accountKey(account)];
	const verbs = (Object.keys(VERBS) as Verb[]).filter((verb) => processes[verb]);
	return (
		<li class="box account" data-account={accountKey(account)}>
			<header class="row">
				<ChannelMark channel={channel} />
				<h3 class="cut">
					{channelName(channel)} <span class="account-id">{account.account}</span>
				</h3>
				{account.lab && (
					<span class="tag" title="A fake platform of the channel lab">
						fake
					</span>
				)}
				<Button
					class="quiet"
					icon="shield"
					aria-disabled={health?.isChecking}
					onClick={() => page.actions.check(account)}
					aria-label={`Check ${channelName(channel)} ${account.account}`}
					text={health?.isChecking ? "Checking…" : "Check"}
				/>
			</header>
			<dl class="processes">
				{verbs.length === 0 && <p class="note">No process yet: one is started when it is needed.</p>}
				{verbs.map((verb) => (
					<Process key={verb} name={VERBS[verb]} process={processes[verb]!} skewMs={skewMs} />
				))}
			</dl>
			<p class="fine row wrap account-facts">
				<Countdown until={rate.blocked_until} skewMs={skewMs} label="Rate limited for" />
				<Counts account={account} />
				{account.garbage_lines > 0 && <span>{plural(account.garbage_lines, "line")} not understood</span>}
			</p>
			{lastError !== undefined && <p class="error">{lastError}</p>}
			<HealthNote health={health} />
		</li>
	);
}

const Process = ({ name, process, skewMs }: { name: string; process: AdapterProcessJson; skewMs: number }) => (
	<div class="process">
		<dt>{name}</dt>
		<dd>
			<Status words={PROCESS_WORDS[process.state]} />
			{process.pid !== undefined && <span>pid {process.pid}</span>}
			{process.restarts > 0 && <span>{plural(process.restarts, "restart")}</span>}
			<Countdown until={process.until} skewMs={skewMs} label="again in" />
		</dd>
		{process.last_error !== undefined && <dd class="error">{process.last_error}</dd>}
	</div>
);

function Counts({ account }: { account: AccountJson }) {
	const counted = (Object.keys(account.deliveries) as (keyof AccountJson["deliveries"])[]).filter(
		(state) => account.deliveries[state] > 0,
	);
	if (counted.length === 0) return <span>No deliveries yet</span>;
	return (
		<>
			{counted.map((state) => (
				<span key={state} data-tone={DELIVERY_WORDS[state].tone}>
					{account.deliveries[state]} {DELIVERY_WORDS[state].text.toLowerCase()}
				</span>
			))}
		</>
	);
}

/** The result of the check. The element is always in the document, so that a screen reader announces its text. */
const HealthNote = ({ health }: { health: Health | undefined }) => (
	<p class="health" role="status" data-ok={health?.ok}>
		{health?.ok !== undefined && (
			<>
				<Icon name={health.ok ? "check" : "cross"} />{" "}
				<span>{health.detail || (health.ok ? "It works." : "It fails.")}</span>
			</>
		)}
	</p>
);
