/** Polling: at the interval of the last result, one request at a time, and not while the tab is hidden. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startPolling, type Visibility } from "../../packages/web/src/ui/timing.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function page() {
	let hidden = false;
	const shown = new Set<() => void>();
	const visibility: Visibility = {
		isHidden: () => hidden,
		onShown(callback) {
			shown.add(callback);
			return () => void shown.delete(callback);
		},
	};
	return {
		visibility,
		hide() {
			hidden = true;
		},
		show() {
			hidden = false;
			for (const callback of shown) callback();
		},
	};
}

describe("polling", () => {
	it("waits as long as the last answer says, and stops when it says nothing", async () => {
		const delays = [100, 250, undefined];
		const ask = vi.fn(async () => delays.shift());
		const poller = startPolling(ask, page().visibility);
		await vi.advanceTimersByTimeAsync(99);
		expect(ask).toHaveBeenCalledTimes(1);
		await vi.advanceTimersByTimeAsync(1);
		expect(ask).toHaveBeenCalledTimes(2);
		await vi.advanceTimersByTimeAsync(10_000);
		expect(ask).toHaveBeenCalledTimes(3);
		poller.now();
		await vi.advanceTimersByTimeAsync(0);
		expect(ask).toHaveBeenCalledTimes(4);
	});

	it("never asks twice at a time: a wish meanwhile is granted right after", async () => {
		let answer = (_: undefined) => {};
		const ask = vi.fn(() => new Promise<undefined>((resolve) => (answer = resolve)));
		const poller = startPolling(ask, page().visibility);
		poller.now();
		poller.now();
		expect(ask).toHaveBeenCalledTimes(1);
		answer(undefined);
		await vi.advanceTimersByTimeAsync(0);
		expect(ask).toHaveBeenCalledTimes(2);
		answer(undefined);
		await vi.advanceTimersByTimeAsync(10_000);
		expect(ask).toHaveBeenCalledTimes(2);
	});

	it("rests while the page is hidden, and asks as soon as it is shown", async () => {
		const { visibility, hide, show } = page();
		const ask = vi.fn(async () => 100);
		const poller = startPolling(ask, visibility);
		hide();
		await vi.advanceTimersByTimeAsync(10_000);
		expect(ask).toHaveBeenCalledTimes(1);
		show();
		await vi.advanceTimersByTimeAsync(0);
		expect(ask).toHaveBeenCalledTimes(2);
		poller.stop();
		show();
		await vi.advanceTimersByTimeAsync(10_000);
		expect(ask).toHaveBeenCalledTimes(2);
	});
});
