/**
 * An adapter whose platform is a file: `node file-platform.mjs <flavour> <verb> …`. Every call is a line in the file, so a call has happened
 * or not, and the file is what a person would see. Settings make it slow, noisy, failing or mortal.
 */

import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const [flavour = "full", verb = "info"] = process.argv.slice(2);
const isBasic = { collecting: true, basic: true }[flavour] === true;

const INFO = {
	channel: flavour,
	version: "1",
	protocol: 1,
	supports: {
		full: ["monitor", "send", "stream", "health", "typing", "parts"],
		collecting: ["send", "stream", "health"],
		basic: ["send", "stream"],
		streamonly: ["stream"],
		blocks: ["send", "health", "typing"],
		blind: ["send"],
		mail: ["send"],
		files: ["send", "attachments"],
		drafts: ["send", "stream", "attachments"],
		letters: ["send", "attachments"],
	}[flavour],
	...(isBasic ? {} : { fields: ["runId", "offset", "intent"] }),
	limits: { textMax: 4000, unit: "utf16" },
	...(flavour === "full" || flavour === "blocks" ? { typing: { intervalMs: 40, expiryMs: 100 } } : {}),
	...(flavour === "mail" || flavour === "letters" ? { delivery: "whole" } : {}),
	...(isBasic || flavour === "blind" ? {} : { reconcile: "history" }),
	blocks: { minChars: 20, maxChars: 60, idleMs: 50, humanDelayMs: { min: 1, max: 2 } },
	settings: [],
};

if (verb === "info") {
	console.log(JSON.stringify(INFO));
	process.exit(0);
}

const { settings } = JSON.parse(readFileSync(process.env.NEXUS_ACCOUNT_FILE, "utf8"));
const file = settings.file;
const number = (name, fallback) => (settings[name] === undefined ? fallback : Number(settings[name]));
const say = (status) => process.stdout.write(`${JSON.stringify(status)}\n`);
const memory = process.env.NEXUS_STATE_FILE;
const remembered = () => (existsSync(memory) ? JSON.parse(readFileSync(memory, "utf8")) : {});
/** Renamed into place: a kill from outside may come at any moment. */
const remember = (values) => {
	writeFileSync(`${memory}.tmp`, JSON.stringify({ ...remembered(), ...values }));
	renameSync(`${memory}.tmp`, memory);
};

if (verb === "health") {
	console.log(JSON.stringify({ ok: settings.file !== undefined, detail: `writes to ${settings.file}` }));
	process.exit(0);
}

const deaths = settings.deaths?.split(",").map(Number) ?? [];
const died = deaths.length > 0 ? (remembered().died ?? 0) : 0;
let moments = 0;

/** `deaths: "3,1"`: the first process dies at its third moment, the second at its first, the others live. Lines and calls have moments before and after. */
function maybeDie() {
	moments += 1;
	if (moments !== deaths[died]) return;
	remember({ died: died + 1 });
	process.kill(process.pid, "SIGKILL");
	// The signal is on its way; nothing more may happen.
	for (;;);
}

function call(op) {
	maybeDie();
	appendFileSync(file, `${JSON.stringify({ ...op, at: Date.now() })}\n`);
	maybeDie();
}

const calls = () =>
	existsSync(file)
		? readFileSync(file, "utf8")
				.trim()
				.split("\n")
				.filter(Boolean)
				.map((line) => JSON.parse(line))
		: [];
const found = (nonce) => calls().find((op) => op.op === "create" && op.nonce === nonce)?.id;
const newId = () => `m${process.pid}-${calls().length}`;

if (settings.stderr) process.stderr.write(`${"x".repeat(5000)}\nready\n`);
if (settings.dieAtOnce) process.exit(Number(settings.dieAtOnce));
if (settings.garbage) process.stdout.write('not json\n[1]\n{"type":\n');
if (settings.flood) process.stdout.write(`${"y".repeat(number("flood", 0))}\n`);
if (settings.memoryMb) globalThis.ballast = Buffer.alloc(number("memoryMb", 0) * 2 ** 20, 1);

/** One line after another; `slowMs` makes it a slow reader. */
async function serve(take) {
	process.stdin.setEncoding("utf8");
	let rest = "";
	for await (const chunk of process.stdin) {
		const lines = (rest + chunk).split("\n");
		rest = lines.pop();
		for (const line of lines) {
			maybeDie();
			await take(JSON.parse(line));
			if (settings.slowMs) await new Promise((resolve) => setTimeout(resolve, number("slowMs", 0)));
		}
	}
}

const deliveries = new Map();

/** The stream verb with all fields: create by intent, edit, roll over at the limit, resume. */
async function stream(line) {
	const named = { delivery: line.delivery, runId: line.runId };
	if (line.type === "typing")
		return call({ op: "typing", to: line.target.to, on: line.on, delivery: line.delivery, runId: line.runId });
	if (line.type === "stream_start") {
		const { resume } = line;
		call({ op: "start", to: line.target.to, delivery: line.delivery, resume, options: line.options });
		const d = {
			named,
			to: line.target.to,
			from: resume?.position ?? 0,
			text: "",
			bounds: [],
			ordinal: resume?.ordinal ?? 0,
			ids: [],
		};
		d.errorText = line.options?.errorText;
		if (resume?.messageId) d.message = { id: resume.messageId, shown: resume.shown ?? 0 };
		if (resume?.uncertain) {
			const id = found(resume.uncertain.nonce);
			if (id) {
				d.message = { id, nonce: resume.uncertain.nonce };
				say({ type: "message_created", messageId: id, nonce: resume.uncertain.nonce, from: d.from, ...named });
			} else d.ready = resume.uncertain.nonce;
		}
		deliveries.set(line.delivery, d);
		return;
	}
	const d = deliveries.get(line.delivery);
	if (!d) return;
	if (line.type === "token") d.text += line.text;
	if (line.type === "reasoning") call({ op: "reasoning", to: d.to, text: line.text });
	if (line.type === "part") call({ op: "part", to: d.to, payload: line.payload });
	if (line.type === "tool_status") call({ op: "tool", to: d.to, keys: Object.keys(line).sort().join() });
	if (line.type === "stream_end" && line.final === false) d.bounds.push(d.from + d.text.length);
	if (line.type === "stream_end" && line.final !== false) d.closed = true;
	if (line.type === "stream_error") d.closed = true;
	if (line.type === "ack") d.ready = line.nonce;
	if (settings.failAfter && d.from + d.text.length > number("failAfter", 0)) {
		deliveries.delete(line.delivery);
		say({ type: "delivery_error", error: "set to fail", code: settings.failCode ?? "unavailable", ...d.named });
		return;
	}
	if (settings.silentAtEnd && d.closed && (remembered().silences ?? 0) < 1) {
		remember({ silences: 1 });
		deliveries.delete(line.delivery);
		return;
	}
	write(d);
}

function write(d) {
	for (;;) {
		const bound = d.bounds[0];
		const segment = bound === undefined ? d.text : d.text.slice(0, bound - d.from);
		const ended = bound !== undefined || d.closed;
		if (segment === "" && !d.message) {
			if (bound !== undefined) {
				d.bounds.shift();
				continue;
			}
			if (!d.closed) return;
			deliveries.delete(d.named.delivery);
			say({ type: "delivery_complete", messageIds: d.ids, ...d.named });
			return;
		}
		if (!d.message) {
			if (!d.announced && !d.ready) {
				d.announced = true;
				d.ordinal++;
				const nonce = `n${d.named.delivery.slice(-8)}.${d.ordinal}`;
				say({ type: "message_creating", nonce, from: d.from, ordinal: d.ordinal, ...d.named });
			}
			if (!d.ready) return;
			const id = newId();
			call({ op: "create", id, nonce: d.ready, to: d.to, text: segment.slice(0, 4000) });
			say({ type: "message_created", messageId: id, nonce: d.ready, from: d.from, ...d.named });
			d.message = { id, nonce: d.ready };
			d.ready = undefined;
			d.announced = false;
		}
		const limit = number("limit", 4000);
		const piece = segment.slice(0, limit);
		if (d.message.shown === undefined || d.message.shown <= d.from + piece.length) {
			call({ op: "edit", id: d.message.id, to: d.to, text: piece });
			say({
				type: "message_updated",
				messageId: d.message.id,
				chars: piece.length,
				to: d.from + piece.length,
				...d.named,
			});
		}
		if (segment.length <= limit && !ended) return;
		const nonce = d.message.nonce ? { nonce: d.message.nonce } : {};
		const to = d.from + piece.length;
		if (bound === to) d.bounds.shift();
		say({
			type: "message_sent",
			messageId: d.message.id,
			final: d.closed && d.text.length === piece.length,
			from: d.from,
			to,
			...nonce,
			...d.named,
		});
		d.ids.push(d.message.id);
		d.text = d.text.slice(piece.length);
		d.from = to;
		d.message = undefined;
	}
}

/** The basic lines, no names, no positions: one message at the end. */
let current;
function collect(line) {
	if (line.type === "stream_start") current = { to: line.target.to, text: "", keys: Object.keys(line).sort().join() };
	if (line.type === "token") {
		current.text += line.text;
		current.token = Object.keys(line).sort().join();
	}
	if (line.type === "reasoning") call({ op: "reasoning", to: current.to, text: line.text, after: current.text });
	if (settings.failAfter && current.text.length > number("failAfter", 0)) {
		say({ type: "delivery_error", error: "set to fail" });
		current = { text: "" };
		return;
	}
	if (line.type !== "stream_end" || line.final === false) return;
	const id = newId();
	call({ op: "create", id, to: current.to, text: current.text, keys: current.keys, token: current.token });
	say({ type: "message_created", messageId: id });
	say({ type: "message_sent", messageId: id, final: true });
	say({ type: "delivery_complete", messageIds: [id] });
}

/** The basic lines, with a message that grows: `quiet` leaves its characters uncounted, `skipCreated` its creation untold. */
function growing(line) {
	if (line.type === "stream_start") current = { to: line.target.to, text: "", ids: [] };
	if (line.type === "reasoning") call({ op: "reasoning", to: current.to, text: line.text, after: current.text });
	if (line.type === "token") {
		current.text += line.text;
		if (settings.failAfter && current.text.length > number("failAfter", 0)) {
			say({ type: "delivery_error", error: "set to fail" });
			current = { text: "" };
			return;
		}
		if (!current.id) {
			current.id = newId();
			call({ op: "create", id: current.id, to: current.to, text: current.text });
			if (!settings.skipCreated) say({ type: "message_created", messageId: current.id });
		} else call({ op: "edit", id: current.id, to: current.to, text: current.text });
		if (!settings.quiet) say({ type: "message_updated", messageId: current.id, chars: current.text.length });
	}
	if (line.type !== "stream_end" && line.type !== "stream_error") return;
	const final = line.final !== false;
	if (current.id) {
		say({ type: "message_sent", messageId: current.id, final });
		current.ids.push(current.id);
	}
	current.id = undefined;
	current.text = "";
	if (final) say({ type: "delivery_complete", messageIds: current.ids });
}

let refusals = number("refusals", 0);
const retryAfterMs = number("retryAfterMs", 60);

function send(line) {
	if (line.type === "typing")
		return call({ op: "typing", to: line.target.to, on: line.on, delivery: line.delivery, runId: line.runId });
	if (line.type === "find") {
		call({ op: "find", nonce: line.nonce });
		if (settings.loseFiles) return say({ type: "found", nonce: line.nonce, known: false });
		const id = found(line.nonce);
		return say({ type: "found", nonce: line.nonce, known: true, ...(id ? { messageId: id } : {}) });
	}
	if (settings.refuse) return say({ type: "delivery_error", error: "no", code: settings.refuse, nonce: line.nonce });
	if (refusals-- > 0) {
		call({ op: "refused" });
		say({ type: "rate_limited", retryAfterMs });
		return say({
			type: "delivery_error",
			error: "slow down",
			code: "rate_limited",
			retryAfterMs,
			nonce: line.nonce,
		});
	}
	const id = newId();
	const files = line.attachments?.map(({ name, contentType, data }) => `${name} ${contentType} ${data}`);
	if (settings.refuseFiles && files) {
		return say({ type: "delivery_error", error: "no files", code: "invalid", nonce: line.nonce });
	}
	if (settings.loseFiles && files) {
		return say({ type: "delivery_error", error: "no answer", code: "unknown_outcome", nonce: line.nonce });
	}
	call({ op: "create", id, nonce: line.nonce, to: line.target.to, text: line.text, files });
	if (settings.hang && (remembered().hung ?? 0) < 1) return remember({ hung: 1 });
	say({
		type: "message_sent",
		messageId: id,
		final: true,
		...(isBasic ? {} : { nonce: line.nonce, from: line.from, to: line.to }),
	});
	if (isBasic) process.exit(0);
}

async function monitor() {
	for (let n = 1; n <= number("inbound", 0); n++) {
		const target = { to: "c1" };
		say({
			type: "message",
			eventId: `e${n}`,
			from: { id: "u1" },
			chat: { id: "c1", type: "direct" },
			text: `t${n}`,
			target,
			ts: n,
		});
	}
	await serve((line) => {
		if (line.type === "ack") call({ op: "ack", eventId: line.eventId });
		else
			say({
				type: "webhook_response",
				id: line.id,
				status: 202,
				body: `${line.method} ${Buffer.from(line.body, "base64")}`,
			});
	});
}

if (verb === "monitor") await monitor();
else await serve(verb === "send" ? send : isBasic ? (flavour === "basic" ? growing : collect) : stream);
