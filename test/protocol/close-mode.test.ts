import { expect, test } from "vitest";
import { LOG_KINDS, STREAM_ENDPOINTS } from "../../packages/protocol/src/protocol.ts";

test.each(Object.entries(LOG_KINDS))("P5.1: logs of kind %s declare how they close", (_, { closes }) => {
	expect(["A", "B", "C", "D"]).toContain(closes);
});

test.each(Object.entries(STREAM_ENDPOINTS))("P5.1: %s declares how it closes", (endpoint, { closes }) => {
	expect(endpoint).toMatch(/^(GET|POST) \/v1\/[a-z/{}]+$/);
	expect(["A", "B", "C", "D"]).toContain(closes);
});

test("P5.2, P5.5: a run has a terminal, a session has none", () => {
	expect(LOG_KINDS.run.closes).toBe("A");
	expect(STREAM_ENDPOINTS["GET /v1/runs/{run}/stream"].closes).toBe(LOG_KINDS.run.closes);
	expect(STREAM_ENDPOINTS["GET /v1/sessions/{session}/stream"].closes).toBe("D");
});
