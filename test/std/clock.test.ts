import { afterEach, expect, test, vi } from "vitest";
import { elapsing, neverBack, systemClock } from "../../packages/protocol/src/clock.ts";

afterEach(() => void vi.useRealTimers());

const DAY_MS = 86_400_000;

test.each([30 * DAY_MS, 100 * DAY_MS])(
	"a wait that is longer than a timer of Node can hold takes its time (%d ms)",
	(ms) => {
		vi.useFakeTimers();
		let called = 0;
		systemClock.after(ms, () => called++);
		vi.advanceTimersByTime(ms - 1);
		expect(called).toBe(0);
		vi.advanceTimersByTime(1);
		expect(called).toBe(1);
		vi.advanceTimersByTime(200 * DAY_MS);
		expect(called).toBe(1);
	},
);

test("an endless wait never ends, and can be cancelled like every other", () => {
	vi.useFakeTimers();
	let called = 0;
	const cancel = systemClock.after(Infinity, () => called++);
	vi.advanceTimersByTime(100 * DAY_MS);
	expect(called).toBe(0);
	cancel();
	const late = systemClock.after(30 * DAY_MS, () => called++);
	vi.advanceTimersByTime(29 * DAY_MS);
	late();
	vi.advanceTimersByTime(30 * DAY_MS);
	expect(called).toBe(0);
	expect(vi.getTimerCount()).toBe(0);
});

test("a time that never goes back continues from where it was, however often the clock is set back", () => {
	const wall = { time: 1000 };
	const now = neverBack({ now: () => wall.time });
	const read = (time: number) => {
		wall.time = time;
		return now();
	};
	expect([1000, 1010, 400, 405, 100, 101, 5000].map(read)).toEqual([1000, 1010, 1010, 1015, 1015, 1016, 5915]);
});

test("a time that elapses is moved by nothing but what really passes", () => {
	const wall = { time: 1000, passed: 7.25 };
	const now = elapsing({ now: () => wall.time, monotonic: () => wall.passed });
	const read = (time: number, passed: number) => {
		Object.assign(wall, { time, passed });
		return now();
	};
	expect([read(1000, 7.25), read(9_000_000, 8.25), read(0, 10.75)]).toEqual([1000, 1001, 1003]);
	expect(Math.abs(elapsing(systemClock)() - Date.now())).toBeLessThan(1000);
});
