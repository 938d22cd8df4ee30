/** `nexus app`: an application is added, listed and removed. */

import { expect, it } from "vitest";
import { daemonWith } from "./in-process.ts";

it("Z25: add prints the token alone, once; list never does; rm takes it back", async () => {
	const { on } = await daemonWith();
	expect((await on("app")).err).toContain("there are no applications");
	const added = await on("app", "add", "shop", "--name", "Web shop");
	expect(added.code).toBe(0);
	expect(added.out).toMatch(/^nxa_[\w-]{43}\n$/);
	expect(added.err).toContain("cannot be shown again");
	const token = added.out.trim();
	const listed = await on("app", "list", "--json");
	expect(JSON.parse(listed.out)).toEqual({
		...{ app_id: "shop", name: "Web shop", created_at: expect.stringMatching(/^\d{4}-.*Z$/) },
		...{ stored_bytes: "0", stored_bytes_max: String(2 * 1024 ** 3) },
		stored: { jobs: "0", workflows: "0", logs: "0", artifacts: "0", messages: "0" },
	});
	expect((await on("app", "list")).out).toMatch(/^shop\tWeb shop\t.*\t\t0\.0 of 2048\.0 MiB\n$/);
	expect((await on("app", "clear", "shop")).out).toBe("cleared shop: 0.0 of 2048.0 MiB\n");
	expect(listed.out).not.toContain(token);
	expect((await on("app", "add", "shop")).code).toBe(5);
	// With an application's token the command line reaches nothing of the owner's.
	expect((await on("sessions", "--token", token)).code).toBe(3);
	expect((await on("app", "list", "--token", token)).code).toBe(3);
	expect((await on("app", "rm", "shop")).out).toBe("removed shop\n");
	expect((await on("app", "rm", "shop")).code).toBe(4);
	expect((await on("app", "list")).out).toBe("");
	expect((await on("app", "list", "--all")).out).toMatch(/^shop\tWeb shop\t/);
});
