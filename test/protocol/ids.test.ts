import fc from "fast-check";
import { expect, test } from "vitest";
import {
	isSessionLabel,
	messageIdOf,
	newEventId,
	newId,
	newRunId,
	runIdOf,
	timeOfId,
	traceIdIn,
	traceIdOf,
} from "../../packages/protocol/src/protocol.ts";

test("P1.17: ids have their prefix and 26 characters of base 32", () => {
	expect(newRunId()).toMatch(/^run_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
	expect(newEventId()).toMatch(/^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
});

test("P1.17: ids sort as strings by creation, within a millisecond and when the clock steps back", () => {
	const start = Date.now() + 1000;
	fc.assert(
		fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 2, maxLength: 200 }), (steps) => {
			let now = start;
			const ids = steps.map((step) => {
				now += step;
				return newId("x", now);
			});
			expect(ids).toEqual([...new Set(ids)].sort());
		}),
	);
});

test("P1.17: the time is the beginning of an id; the rest is random and then counts up", () => {
	const far = 2 ** 45;
	const most = () => 1 - 2 ** -32;
	const [one, two, three] = [newId("x", far, most), newId("x", far, most), newId("x", far + 1, () => 0)];
	expect(one).toBe(`x_1000000000F${"Z".repeat(15)}`);
	expect(two).toBe(`x_1000000000G${"0".repeat(15)}`);
	expect(three).toBe(`x_1000000001${"0".repeat(16)}`);
});

test("P1.17: a stream's id leads back to its run", () => {
	const run = newRunId();
	expect(messageIdOf(run, 12)).toBe(`${run}.12`);
	expect(runIdOf(messageIdOf(run, 12))).toBe(run);
});

test("P1.17: a trace id is 32 hex digits, different for different runs and the same for the same", () => {
	const [one, two] = [newRunId(), newRunId()];
	for (const run of [one, two, "run_1", "run_2", ""]) expect(traceIdOf(run)).toMatch(/^[0-9a-f]{32}$/);
	expect(traceIdOf(one)).not.toBe(traceIdOf(two));
	expect(traceIdOf("run_1")).not.toBe(traceIdOf("run_2"));
	expect(traceIdOf(one)).toBe(traceIdOf(one));
});

test("P1.17: the trace id of a run is its id's own 128 bits", () => {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	const values = fc.array(fc.nat(31), { minLength: 25, maxLength: 25 });
	fc.assert(
		fc.property(fc.nat(7), values, (first, rest) => {
			const all = [first, ...rest];
			const bits = all.reduce((sum, value) => sum * 32n + BigInt(value), 0n);
			const runId = `run_${all.map((value) => alphabet[value]).join("")}`;
			expect(traceIdOf(runId)).toBe(bits.toString(16).padStart(32, "0"));
		}),
	);
});

test("P6.2: session labels", () => {
	for (const label of ["main", "a", "0", "user@example.org:42", "x".repeat(128), "A+b-c_d"]) {
		expect(isSessionLabel(label)).toBe(true);
	}
	for (const label of ["", ".", "-a", "a b", "a/b", "ä", "x".repeat(129), "a\n", "_a"]) {
		expect(isSessionLabel(label)).toBe(false);
	}
});

test("P6.3: a W3C traceparent names its trace; a malformed one names none", () => {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
	expect(traceIdIn(`00-${trace}-00f067aa0ba902b7-01`)).toBe(trace);
	expect(traceIdIn(`01-${trace}-00f067aa0ba902b7-01-more`)).toBe(trace);
	const wrong = [
		"",
		trace,
		`ff-${trace}-00f067aa0ba902b7-01`,
		`00-${trace}-00f067aa0ba902b7-01-more`,
		`00-${trace.toUpperCase()}-00f067aa0ba902b7-01`,
		`00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
		`00-${trace}-${"0".repeat(16)}-01`,
	];
	for (const header of wrong) expect(traceIdIn(header)).toBeUndefined();
});

test("an id contains its time of creation; other text yields none", () => {
	const now = 2 ** 46;
	expect(timeOfId(newRunId(now))).toBe(now);
	for (const text of ["", "run_", "run_1", `run_${"U".repeat(26)}`, `${newRunId()}.1`])
		expect(timeOfId(text)).toBeUndefined();
});
