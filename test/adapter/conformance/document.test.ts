/** The protocol's document speaks of everything that is in the protocol. */

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const read = (relative: string) => readFileSync(new URL(`../../../${relative}`, import.meta.url), "utf8");
const document = read("docs/adapter-protocol.md");
const port = read("packages/adapter/src/info.ts") + read("packages/adapter/src/port.ts");

describe("docs/adapter-protocol.md", () => {
	it("has every type of line", () => {
		const types = new Set([...port.matchAll(/type: "(\w+)"/g)].map((match) => match[1] ?? ""));
		expect(types.size).toBeGreaterThan(15);
		expect([...types].filter((type) => !document.includes(type))).toEqual([]);
	});

	it("has every field of info, resume and inbound messages, and every fault", () => {
		const body = (name: string) => port.split(`export interface ${name} {`)[1]?.split("\n}")[0] ?? "";
		const fields = ["AdapterInfo", "Resume", "InboundMessage", "DeliveryOptions"].flatMap((name) =>
			[...body(name).matchAll(/^\t(\w+)\??:/gm)].map((match) => match[1] ?? ""),
		);
		const faults = [...(port.split("export type PlatformFault")[1] ?? "").matchAll(/\| "(\w+)"/g)].map(
			(match) => match[1] ?? "",
		);
		expect(fields.length).toBeGreaterThan(20);
		expect(faults).toHaveLength(6);
		expect([...fields, ...faults].filter((word) => !document.includes(word))).toEqual([]);
	});

	it("every JSON object on a line of its examples is JSON", () => {
		const examples = [...document.matchAll(/^(?:[→←]|daemon +→|adapter +→) (\{.*\})(?: +\S.*)?$/gm)].map(
			(match) => match[1] ?? "",
		);
		expect(examples.length).toBeGreaterThan(15);
		const broken = examples.filter((text) => {
			try {
				JSON.parse(text.replaceAll(", …", "").replaceAll("{…}", "{}"));
				return false;
			} catch {
				return true;
			}
		});
		expect(broken).toEqual([]);
	});
});
