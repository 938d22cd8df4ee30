import { expect, test } from "vitest";
import { ENDPOINT_CLOSE_MODE, LOG_CLOSE_MODE } from "../../src/protocol/protocol.ts";

test.each(Object.entries(LOG_CLOSE_MODE))("P5.1: logs of kind %s declare how they close", (_, mode) => {
	expect(["A", "B", "C", "D"]).toContain(mode);
});

test.each(Object.entries(ENDPOINT_CLOSE_MODE))("P5.1: %s declares how it closes", (endpoint, mode) => {
	expect(endpoint).toMatch(/^(GET|POST) \/v1\/[a-z/{}]+$/);
	expect(["A", "B", "C", "D"]).toContain(mode);
});

test("P5.2, P5.5: a run has a terminal, a session has none", () => {
	expect(LOG_CLOSE_MODE.run).toBe("A");
	expect(LOG_CLOSE_MODE.session).toBe("D");
	expect(ENDPOINT_CLOSE_MODE["GET /v1/runs/{run}/stream"]).toBe(LOG_CLOSE_MODE.run);
	expect(ENDPOINT_CLOSE_MODE["GET /v1/sessions/{session}/stream"]).toBe(LOG_CLOSE_MODE.session);
});
