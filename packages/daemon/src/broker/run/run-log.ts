/** How a run is found on the Bus: the name of its chain and the facts that recovery needs. */

/** Metadata of a run's log. */
export interface RunMeta {
	session: string;
	engine: string;
	startedAt: number;
	/** The inbound events it answers; none when it continues another run. */
	events: { eventId: string }[];
	/** The run that it continues. */
	continues?: string;
}

/** All runs of a session, read as one log. */
export const chainOf = (session: string): string => `session:${session}`;
