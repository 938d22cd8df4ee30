import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { download, fetchFiles } from "../../../src/adapter/kit/network.ts";

test("a download that stands still is given up, and what stayed behind is named", async () => {
	const server = createServer((_request, response) => void response.write("the beginning"));
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
	try {
		const file = { name: "a.txt", contentType: "text/plain" };
		const { attachments, notes } = await fetchFiles([file], (_, bytesMax) =>
			download(url, { bytesMax, timeoutMs: 100 }),
		);
		expect(attachments).toEqual([]);
		expect(notes).toEqual([expect.stringMatching(/^\[attachment a\.txt could not be fetched: download: .*timeout/)]);
	} finally {
		server.closeAllConnections();
		server.close();
	}
});
