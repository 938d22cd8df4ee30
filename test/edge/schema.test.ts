/** The schemas and the wire types cannot drift apart: the compiler says where. */

import { expect, it } from "vitest";
import { z } from "zod";
import type { Fields } from "../../packages/daemon/src/edge/api/schema.ts";

interface Wire {
	id: string;
	note?: string;
	state: "open" | "closed";
}

const whole = { id: z.string(), note: z.string().exactOptional(), state: z.enum(["open", "closed"]) };
const { id, state } = whole;

it("a field that is missing, unknown, of another type or not optional is a type error", () => {
	whole satisfies Fields<Wire>;
	// @ts-expect-error `note` is missing, although the wire type lets it be absent.
	({ id, state }) satisfies Fields<Wire>;
	// @ts-expect-error The wire type does not know `more`.
	({ id, note: whole.note, state, more: z.string() }) satisfies Fields<Wire>;
	// @ts-expect-error A number is not a string.
	({ ...whole, id: z.number() }) satisfies Fields<Wire>;
	// @ts-expect-error The wire type does not know this state.
	({ ...whole, state: z.enum(["open", "closed", "ajar"]) }) satisfies Fields<Wire>;
	// @ts-expect-error Absent on the wire, required here.
	({ ...whole, note: z.string() }) satisfies Fields<Wire>;
	expect(z.object(whole).parse({ id: "a", state: "open" })).toEqual({ id: "a", state: "open" });
});
