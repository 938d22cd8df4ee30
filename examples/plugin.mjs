// @ts-check
/** A whole plugin: each function may be left out. A plugin that throws or takes too long changes nothing, and `nexus runs` shows it. */

/** @satisfies {import("nexus-stream").Plugin} */
const officeHours = {
	name: "office-hours",

	/** A message was accepted; it is not queued yet. */
	onReceive({ event }) {
		if (/\bpassword\b/i.test(event.text)) return { reject: "do not send passwords in a chat" };
		return { text: event.text.trim() };
	},

	/** A run is about to start. */
	onPrepare({ event, channel }) {
		const isReport = event.text.startsWith("report");
		return {
			attach: `It is ${new Date().toLocaleString("en", { weekday: "long", hour: "numeric" })}; the user writes on ${channel}.`,
			context: { disable_streaming: isReport },
		};
	},

	/** The run has settled and its deliveries have ended. */
	onComplete({ runId, response }) {
		if (response?.status === "failed") console.error(`run ${runId} failed: ${response.error?.message}`);
	},
};

export default officeHours;
