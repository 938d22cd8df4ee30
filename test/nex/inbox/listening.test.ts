import { expect, it } from "vitest";
import type { AdapterInfo } from "../../../packages/adapter/src/port.ts";
import { createListening } from "../../../packages/daemon/src/nex/inbox/listening.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";

const INFO = { supports: ["monitor"], public: false } as unknown as AdapterInfo;
const settled = () => new Promise((resolve) => setImmediate(resolve));

it("an adapter that cannot be asked is asked again, for the accounts that are still configured, and no longer for none", async () => {
	const clock = manualClock();
	const configured = new Set(["a", "b"]);
	const heard: string[] = [];
	let asked = 0;
	let works = false;
	const outbound = {
		info: () => {
			asked++;
			return works ? Promise.resolve(INFO) : Promise.reject(new Error("it is being updated"));
		},
		monitor: (_channel: string, account: string) => void heard.push(account),
	};
	const listening = createListening({
		outbound,
		clock,
		log: silentLog,
		limits: { monitorRetryMs: 100 },
		receive: async () => {},
		onChoice: async () => undefined,
		config: { channels: { chat: { accounts: { a: {}, b: {} } } } },
		isConfigured: (_channel, account) => configured.has(account),
	});
	listening.start();
	await settled();
	configured.delete("a");
	clock.advance(100);
	await settled();
	expect(asked).toBe(2);
	works = true;
	clock.advance(100);
	await settled();
	expect(heard).toEqual(["b"]);

	works = false;
	listening.add([{ channel: "chat", id: "b" }]);
	await settled();
	configured.clear();
	asked = 0;
	clock.advance(1000);
	await settled();
	expect(asked).toBe(0);
	listening.stop();
});
