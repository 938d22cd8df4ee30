/** Only a certain quotation of our own mail is taken off a reply; every fetched mail is a message, or a line of the log says why not. */

import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import type { InboundMessage } from "../../../packages/adapter/src/kit.ts";
import { createGmailFake, GMAIL_ADDRESS, type GmailFake } from "../../../packages/lab/src/gmail.ts";
import { platform } from "../../../packages/platforms/src/gmail/gmail.ts";
import { textOf, withoutQuote } from "../../../packages/platforms/src/gmail/text.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { until } from "../../until.ts";
import { memory, openSession } from "../session.ts";

const ME = "nexus@example.com";
const read = (text: string, isReply = true) => withoutQuote(text, { isReply, me: ME });

/** Lines that mail programs write above our own mail when a person answers it. */
const ATTRIBUTIONS = [
	`On Mon, Jan 5, 2026 at 3:04 PM Nexus <${ME}> wrote:`,
	`On Mon, Jan 5, 2026 at 3:04 PM Nexus <\n${ME}> wrote:`,
	`On Mon, Jan 5, 2026 at 3:04\u202FPM Nexus of the Whole Company <${ME.toUpperCase()}>\nwrote:`,
	`Am Mo., 5. Jan. 2026 um 15:04 Uhr schrieb Nexus\n<${ME}>:`,
	`Le lun. 5 janv. 2026 à 15:04, Nexus <${ME}> a écrit :`,
	`El lun, 5 ene 2026 a las 15:04, Nexus (<${ME}>) escribió:`,
	`Il giorno lun 5 gen 2026 alle ore 15:04 Nexus <${ME}> ha scritto:`,
	`2026年1月5日(月) 15:04 Nexus <${ME}>:`,
	"On Jan 5, 2026, at 3:04 PM, Nexus wrote:",
	"On 1/5/26 15:04, Nexus wrote:",
	"Am 05.01.26 um 15:04 schrieb Nexus:",
	"Op 5-1-2026 om 15:04 schreef Nexus:",
	"Le 05/01/2026 à 15:04, Nexus a écrit :",
];

/** A person's own words above a quotation, and mails that others wrote. */
const OWN = [
	"Call me at 5\n\nBob wrote:\n> Hello",
	"My order 4711 has this problem:\n> it does not turn on",
	"My order 4711 of 2026 has this problem:\n\n> it does not turn on",
	"plain\n> code?",
	"This is what I saw at 15:04 on 5.1.2026:\n\n> kernel panic",
	"Two things, both from 2026-01-05 15:04, what do they mean:\n> a\n> b",
	`Why does your mail of 5.1.2026 15:04 from ${ME} claim this:\n> the earth is flat`,
	"See below.\n\nOn Mon, Jan 5, 2026 at 3:04 PM Bob <bob@example.com> wrote:\n> We ship on Friday",
	"> quoted\n\nmy answer",
	"a list:\n- one",
	`On Mon, Jan 5, 2026 at 3:04 PM Nexus <${ME}> wrote:\n> Which size?\n\nLarge\n\n> Which colour?`,
];

describe("a quotation", () => {
	test.each(ATTRIBUTIONS)("of our mail is taken off: %j", (attribution) => {
		expect(read(`yes\n\n${attribution}\n> old\n>\n> older\n`)).toBe("yes");
		expect(read(`yes\r\n\r\n${attribution.replaceAll("\n", "\r\n")}\r\n\r\n> old\r\n`)).toBe("yes");
		// A mail that is only a quotation stays as it is.
		expect(read(`${attribution}\n> old`)).toBe(`${attribution}\n> old`);
		// A mail that is not a reply may quote anything.
		expect(read(`yes\n\n${attribution}\n> old`, false)).toContain("> old");
	});

	test.each(OWN)("that may be a person's own words stays: %j", (text) => {
		expect(read(text)).toBe(text);
	});

	test("whatever a person writes above, between or below, their words stay", () => {
		const line = fc.oneof(
			fc.string({ maxLength: 20 }).map((text) => text.replace(/[\r\n]/g, "")),
			fc.constantFrom("", "> quoted", "Bob wrote:", "Problem 4711:", "It is 15:04 on 5.1.2026:", ">"),
		);
		fc.assert(
			fc.property(fc.array(line, { maxLength: 8 }), fc.constantFrom(...ATTRIBUTIONS), (lines, attribution) => {
				const own = lines.join("\n").trim();
				expect(read(own)).toBe(own);
				if (own !== "") expect(read(`${own}\n\n${attribution}\n> old`)).toBe(own);
			}),
		);
	});
});

describe("HTML alone", () => {
	test("Gmail's quotation of our mail is taken off; a forwarded mail and a person's own quotation stay", () => {
		const attr = `On Mon, Jan 5, 2026 at 3:04\u202FPM Nexus &lt;<a href="mailto:${ME}">${ME}</a>&gt; wrote:<br>`;
		const reply = `<div dir="ltr">yes &amp; no</div><br><div class="gmail_quote"><div class="gmail_attr">${attr}</div><blockquote class="gmail_quote"><p>old</p><p>older</p></blockquote></div>`;
		expect(read(textOf(reply))).toBe("yes & no");
		const forwarded = `<div>fyi</div><div class="gmail_quote"><div class="gmail_attr">---------- Forwarded message ---------<br>From: Bob<br></div>We ship on Friday</div>`;
		expect(read(textOf(forwarded))).toContain("We ship on Friday");
		expect(read(textOf("<p>Is it true:</p><blockquote>the sky is green</blockquote><p>I doubt it.</p>"))).toBe(
			"Is it true:\n\n> the sky is green\n\nI doubt it.",
		);
	});

	test("styles, scripts and comments are no text; a hostile page is read in time", () => {
		expect(textOf("<head><title>t</title></head><style>p{}</style><!-- x --><script>1<2</script>a<br>b")).toBe("a\nb");
		// Read more than once per piece, so much would take longer than a test may.
		for (const piece of ["<", "<a ", "<!--", "<style>", "<blockquote>", "&amp"]) textOf(piece.repeat(300_000));
	});
});

describe("every fetched mail", () => {
	let fake: GmailFake;
	const stopping = new AbortController();
	afterEach(async () => {
		stopping.abort();
		await fake.close();
	});

	test("I10: is a message, or a line of the log says why it is not", async () => {
		fake = await createGmailFake({ units: 10_000 });
		const reply = { mail: { inReplyTo: "<x@y>" } };
		await fake.inject({ text: "Call me at 5\n\nBob wrote:\n> Hello", ...reply });
		await fake.inject({ text: "own", from: GMAIL_ADDRESS });
		await fake.inject({ text: "spam", labelIds: ["INBOX", "SPAM"] });
		await fake.inject({ text: "list", mail: { headers: { "List-Id": "<l.example.com>" } } });
		await fake.inject({ text: "", ...reply });
		await fake.inject({ text: "> only a quotation", ...reply });
		const said: InboundMessage[] = [];
		const lines: object[] = [];
		const log = { ...silentLog, info: (facts: object) => void lines.push(facts) };
		const state = memory();
		state.set("history_id", "1000");
		const session = await openSession(platform, fake.settings, { state, log });
		const listening = session.monitor?.(async (message) => void said.push(message), stopping.signal);
		await until("every mail is said or logged", () => said.length + lines.length >= fake.messages.length);
		stopping.abort();
		await listening;
		expect(said.map(({ text }) => text)).toEqual(["Call me at 5\n\nBob wrote:\n> Hello", "> only a quotation"]);
		const reasons = ["it is our own", "it is labelled SPAM", "a program or a list sent it", "it is empty"];
		expect(lines).toEqual(reasons.map((reason) => ({ id: expect.any(String), reason })));
	});
});
