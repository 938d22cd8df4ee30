/** The channel lab: one run on every platform at once, through the real adapters and fake platforms. */

import { z } from "zod";
import { defined } from "../../std/defined.ts";
import type { EdgeDeps, LabState } from "../port.ts";
import { DeliveryView, deliveryMode, deliveryState, deliveryView, IN_LAB } from "./deliveries.ts";
import { component, count, get, type HandlersOf, name, named, post, time } from "./resource.ts";

const LabRequest = component("LabRequest", {
	text: z.string().min(1),
	channels: z.array(name).min(1).max(64).exactOptional(),
});
const LabAccepted = component("LabAccepted", {
	lab_id: z.string(),
	run_id: z.string(),
	session: z.string(),
	channels: z.array(z.object({ channel: z.string(), delivery_id: z.string() })),
});
const LabMessageView = component("LabMessage", {
	id: z.string(),
	text: z.string(),
	style: z
		.enum(["plain", "markdown", "marks", "ranges"])
		.describe("How the text is to be read: as it is, as markdown, with *marks*, or with the given ranges."),
	ranges: z
		.array(
			named("RangeJson", {
				type: z.string(),
				offset: count,
				length: count,
				url: z.string().exactOptional(),
			}),
		)
		.exactOptional(),
	files: z.array(z.string()).exactOptional().describe("Names of what is attached."),
	buttons: z.array(z.string()).exactOptional().describe("Labels of its buttons."),
	created_at: time,
	updated_at: time,
	edits: count.describe("How often it was seen to change."),
});
const LabCallView = named("LabCallJson", {
	at: time,
	call: z.string(),
	ms: z.number().exactOptional(),
	status: count.describe("HTTP status; 0 = no answer."),
	fault: z.string().exactOptional().describe("How it was made to go wrong."),
});
const LabChannelView = named("LabChannelJson", {
	channel: z.string(),
	ready: z.boolean().describe("Its adapter has been started."),
	mode: deliveryMode.exactOptional(),
	state: deliveryState.exactOptional(),
	position: count.exactOptional(),
	delivery: DeliveryView.exactOptional(),
	messages: z.array(LabMessageView),
	draft: LabMessageView.exactOptional().describe("A preview below the messages, on platforms that have one."),
	typing: z.boolean(),
	calls_total: count,
	calls: z.array(LabCallView),
	rate_limited_until: time.exactOptional(),
});
const LabStateView = component("LabState", {
	now: time.describe("By the daemon's clock."),
	run_id: z.string().exactOptional(),
	question_open: z.boolean().describe("A question waits to be decided, or something of it is on its way."),
	channels: z.array(LabChannelView),
});
const LabFaultRequest = component("LabFaultRequest", {
	channel: name,
	kind: named("LabFaultKind", z.enum(["429", "5xx", "hang", "reset_after_accept"])),
	count: z.int().min(1).max(1000).default(1),
});
const LabFaultSet = component("LabFaultSet", { set: z.literal(true) });
const LabAsked = component("LabAsked", { question_id: z.string() });
const LabPressRequest = component("LabPressRequest", {
	channel: name,
	message: name.describe("A message's id in the lab's state."),
	label: name,
});
const LabPressed = component("LabPressed", { pressed: z.literal(true) });

export const LAB_ROUTES = {
	postLab: post(
		"/v1/lab",
		"Sends a message in a separate session, and its answer to fake platforms through the real adapters.",
		{ body: LabRequest, status: 202, answer: LabAccepted, errors: ["not_found", "conflict"] },
	),
	getLabState: get(
		"/v1/lab/state",
		"What the fake platforms show now, with the deliveries of the newest run of the lab.",
		{ answer: LabStateView, errors: ["not_found"] },
	),
	postLabFault: post("/v1/lab/fault", "Has a fake platform misbehave for the next calls.", {
		body: LabFaultRequest,
		answer: LabFaultSet,
		errors: ["not_found"],
	}),
	postLabQuestion: post(
		"/v1/lab/question",
		"Puts a question to fake platforms: with buttons where they have them, else with what to reply.",
		{ body: LabRequest, status: 202, answer: LabAsked, errors: ["not_found"] },
	),
	postLabPress: post("/v1/lab/press", "Presses a button on a fake platform, as a person there does.", {
		body: LabPressRequest,
		answer: LabPressed,
		errors: ["not_found"],
	}),
};

export function labHandlers({ channels: { lab } }: EdgeDeps): HandlersOf<typeof LAB_ROUTES> {
	return {
		async postLab({ body }) {
			const { labId, runId, session, deliveries } = await lab.send(body.text, body.channels);
			const channels = deliveries.map(({ channel, deliveryId }) => ({ channel, delivery_id: deliveryId }));
			return { lab_id: labId, run_id: runId, session, channels };
		},
		getLabState: async () => stateView(await lab.state()),
		async postLabFault({ body }) {
			await lab.fault(body);
			return { set: true };
		},
		postLabQuestion: async ({ body }) => ({ question_id: await lab.ask(body.text, body.channels) }),
		async postLabPress({ body }) {
			await lab.press(body.channel, body.message, body.label);
			return { pressed: true };
		},
	};
}

const stateView = ({ now, runId, questionOpen, channels }: LabState): z.infer<typeof LabStateView> =>
	defined({
		now,
		run_id: runId,
		question_open: questionOpen,
		channels: channels.map(({ delivery, pausedUntil, ...shown }) =>
			defined({
				...shown,
				mode: delivery?.mode,
				state: delivery?.state,
				position: delivery?.cursor,
				delivery: delivery && { ...deliveryView(delivery), ...IN_LAB },
				rate_limited_until: pausedUntil,
			}),
		),
	});
