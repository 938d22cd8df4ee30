/** No secret of an account appears in what people read: errors, logs, health. */

import { describe, expect, test } from "vitest";
import { createRedactor, withoutSecrets } from "../../../packages/adapter/src/serve/account.ts";
import { CHANNELS } from "../../../packages/platforms/src/channels.ts";
import { platform as discord } from "../../../packages/platforms/src/discord/discord.ts";
import { platform as gmail } from "../../../packages/platforms/src/gmail/gmail.ts";
import { platform as imessage } from "../../../packages/platforms/src/imessage/imessage.ts";
import { platform as nostr } from "../../../packages/platforms/src/nostr/nostr.ts";
import { platform as signal } from "../../../packages/platforms/src/signal/signal.ts";
import { platform as slack } from "../../../packages/platforms/src/slack/slack.ts";
import { platform as sms } from "../../../packages/platforms/src/sms/sms.ts";
import { platform as telegram } from "../../../packages/platforms/src/telegram/telegram.ts";
import { platform as whatsapp } from "../../../packages/platforms/src/whatsapp/whatsapp.ts";
import { startAdapter } from "../process.ts";
import { faultOf, openSession } from "../session.ts";

const PLATFORMS = { discord, telegram, slack, whatsapp, sms, signal, imessage, gmail, nostr };
const SECRET = '123456:AA-bb cc"dd/ee';

describe.each(CHANNELS)("%s", (channel) => {
	const platform = PLATFORMS[channel];
	const secrets = platform.info.settings.filter(({ secret }) => secret).map(({ name }) => [name, SECRET]);
	const numbers = { account_sid: `AC${"0".repeat(32)}`, phone_number_id: "1", number: "+15550000000" };
	const settings = { ...numbers, ...Object.fromEntries(secrets) };

	test.each(["example.com", "localhost:8081", "ftp://example.com", `example.com/${SECRET}`])(
		"an api_url that is not an address (%s) is refused before any call, without being shown",
		async (address) => {
			const setting = channel === "nostr" ? "relays" : "api_url";
			const opened = (async () => await openSession(platform, { ...settings, [setting]: address }))();
			const error = await faultOf(opened);
			expect(error).toMatchObject({
				fault: "invalid",
				message: expect.stringMatching(new RegExp(`^${setting} must be (?:an )?address`)),
			});
			expect(error.message).not.toContain(SECRET);
			expect(error.message).not.toContain("example");
		},
	);

	test("its secrets are taken out of texts, in every spelling", () => {
		const redact = createRedactor(platform.info, { id: "a", settings });
		const quoted = `GET https://x/bot${SECRET}/y?password=${encodeURIComponent(SECRET)} ${JSON.stringify({ SECRET })}`;
		const told = redact(quoted);
		if (secrets.length === 0) expect(told).toBe(quoted);
		else expect(told).not.toMatch(/AA-bb/);
		const line = { type: "call", call: "create", detail: `failed: ${SECRET}`, ok: false };
		expect(withoutSecrets(line, redact)).toEqual({ ...line, detail: redact(line.detail) });
	});
});

test("a process tells no token: neither in its log nor in its health", async () => {
	const token = "987654:very-secret-token";
	const adapter = startAdapter("telegram", "health", { token, api_url: `http://127.0.0.1:1/${token}` });
	const code = await adapter.end();
	const said = JSON.stringify(adapter.lines) + adapter.stderr();
	expect(code).toBe(1);
	expect(adapter.lines).toHaveLength(1);
	expect(said).not.toContain("very-secret");
});
