/** A platform's mark, and the link from a delivery or job to its run. */

import { formatRoute } from "../app/route.ts";
import { Icon } from "../ui/icon.tsx";
import { channelMark } from "./channels.ts";

export const ChannelMark = ({ channel }: { channel: string }) => (
	<span class="channel-mark" data-channel={channel} aria-hidden="true">
		{channelMark(channel)}
	</span>
);

/** A link to the run in the inspector. Text that an operator sent directly has no run. */
export const RunLink = ({ runId }: { runId: string | undefined }) =>
	runId?.startsWith("run_") ? (
		<a class="mark inspect" href={formatRoute({ name: "run", runId })} title={runId}>
			<Icon name="pulse" /> Run
		</a>
	) : null;
