import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createGmailFake, GMAIL_ADDRESS, type GmailFake } from "../../../packages/lab/src/gmail.ts";
import { toHtml } from "../../../packages/platforms/src/gmail/compose.ts";
import { platform } from "../../../packages/platforms/src/gmail/gmail.ts";
import { faultOf, openSession, sendOptions } from "../session.ts";

let fake: GmailFake;

beforeEach(async () => {
	fake = await createGmailFake({ units: 10_000 });
});
afterEach(() => fake.close());

const TO = "ann@example.com";

const open = (more: Record<string, string> = {}) => openSession(platform, { ...fake.settings, ...more });

/** The target of an answer to Ann's mail. */
async function asked() {
	await fake.inject({ text: "How?", mail: { messageId: "<q1@example.com>", subject: "Größe" } });
	const threadId = fake.messages.at(-1)?.threadId ?? "";
	return {
		to: TO,
		thread_id: threadId,
		reply_to: "<q1@example.com>",
		references: "<q0@example.com> <q1@example.com>",
		subject: "Größe",
	};
}

describe("a mail", () => {
	test("is joined to its thread, has both forms, and says that a program wrote it", async () => {
		const target = await asked();
		const { messageId } = await (await open({ from_name: "Agent Ä" })).create(
			target,
			"So:\n\n- **one** 🙂\n- two",
			sendOptions("n1"),
		);
		const [sent] = fake.raw(TO);
		expect(sent).toMatchObject({ id: messageId, threadId: target.thread_id });
		const { mail } = sent ?? {};
		expect(mail).toMatchObject({
			from: { name: "Agent Ä", address: GMAIL_ADDRESS },
			subject: "Re: Größe",
			inReplyTo: "<q1@example.com>",
			references: "<q0@example.com> <q1@example.com>",
			messageId: "<nexus.n1@example.org>",
		});
		expect(mail?.text).toContain("- **one** 🙂");
		expect(mail?.html).toContain("<strong>one</strong> 🙂");
		const header = (name: string) => mail?.headers.find(({ key }) => key === name)?.value;
		expect([header("auto-submitted"), header("x-nexus-nonce")]).toEqual(["auto-replied", "n1"]);
	});

	test("without a thread begins one; with others in it goes to them too", async () => {
		const session = await open();
		await session.create({ to: TO, subject: "News" }, "x", sendOptions("a"));
		await session.create({ to: TO, cc: "bo@example.com" }, "y", sendOptions("b"));
		const [first, second] = fake.raw(TO);
		expect(first?.mail.subject).toBe("News");
		expect(second?.mail).toMatchObject({ subject: "Message", cc: [{ address: "bo@example.com" }] });
	});

	test("carries its attachments", async () => {
		const file = { name: "ä b.txt", contentType: "text/plain", data: Buffer.from("content").toString("base64") };
		await (await open()).createWith?.(await asked(), "see", [file], sendOptions());
		const [sent] = fake.raw(TO);
		expect(sent?.mail.text?.trim()).toBe("see");
		const [attached] = sent?.mail.attachments ?? [];
		expect(attached).toMatchObject({ filename: "ä b.txt", mimeType: "text/plain" });
		expect(Buffer.from(attached?.content as ArrayBuffer).toString()).toBe("content");
	});

	test("HTML and harmful links of an answer are text", () => {
		const html = toHtml(
			"<script>x</script> [a](javascript:alert(1)) <b>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\n1 < 2\n```",
		);
		expect(html).not.toMatch(/<script|<b>|javascript:/);
		expect(html).toContain("&lt;script&gt;x&lt;/script&gt;");
		expect(html).toMatch(/<td style="[^"]+">1<\/td>/);
		expect(html).toMatch(/<pre style="[^"]+"><code class="language-js">1 &lt; 2/);
	});
});

describe.each([[false], [true]])("a mail that may have been sent (Gmail's own ids: %s)", (ownIds) => {
	test("is found by its nonce, and nothing else is", async () => {
		const gmail = await createGmailFake({ ownIds, units: 10_000 });
		const session = await openSession(platform, gmail.settings);
		await session.create({ to: TO }, "same", sendOptions("other"));
		gmail.fault({ kind: "reset_after_accept", count: 1, call: "messages.send" });
		expect((await faultOf(session.create({ to: TO }, "same", sendOptions("n1")))).fault).toBe("unknown_outcome");
		expect(await session.find?.({ to: TO }, "n1", "same")).toEqual({ messageId: gmail.raw(TO)[1]?.id });
		expect(await session.find?.({ to: TO }, "n2", "same")).toBeUndefined();
		await gmail.close();
	});
});

describe("faults", () => {
	test.each([
		["a thread that is not there", { to: TO, thread_id: "gone" }, "gone"],
		["no address", { to: "ann" }, "invalid"],
		["nobody", { to: "" }, "invalid"],
	])("%s", async (_, target, fault) => {
		expect((await faultOf((await open()).create(target, "x", sendOptions()))).fault).toBe(fault);
	});

	test("wrong tokens and clients are denied, with what to do", async () => {
		const revoked = await faultOf((await open({ refresh_token: "old" })).health());
		expect(revoked).toMatchObject({ fault: "denied", message: expect.stringContaining("Sign in again") });
		const client = await faultOf((await open({ client_secret: "not-the-secret" })).health());
		expect(client).toMatchObject({ fault: "denied", message: expect.stringContaining("client's id or secret") });
		expect(`${client.message} ${String(client.cause)}`).not.toContain("not-the-secret");
	});

	test("more than the quota of units: rate limited", async () => {
		const small = await createGmailFake({ units: 50 });
		const session = await openSession(platform, small.settings);
		expect((await faultOf(session.create({ to: TO }, "x", sendOptions()))).fault).toBe("rate_limited");
		await small.close();
	});

	test("a broken connection before the sending: unavailable", async () => {
		// Asking for a token is repeated by the SDK, which does no harm.
		fake.fault({ kind: "reset_before", call: "token" });
		expect((await faultOf((await open()).create({ to: TO }, "x", sendOptions()))).fault).toBe("unavailable");
	});
});

test("health says whose account it is", async () => {
	expect(await (await open()).health()).toEqual({ ok: true, detail: `${GMAIL_ADDRESS}, polling` });
});
