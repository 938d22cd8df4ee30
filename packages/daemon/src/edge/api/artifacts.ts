/** Artifacts as files that a browser saves and never shows: an artifact may be a page that its maker wrote. */

import { Readable } from "node:stream";
import { NexusError } from "@nexus-stream/protocol";
import { z } from "zod";
import { principalOfCaller, whenEnded } from "../http/gate.ts";
import type { ArtifactFile, ArtifactReader, EdgeDeps } from "../port.ts";
import { get, type HandlersOf, name } from "./resource.ts";

export const ARTIFACT_ROUTES = {
	getArtifact: get(
		"/v1/artifacts/{artifact}",
		"An artifact as a file to be saved. A Range of bytes is answered with 206.",
		{
			apps: true,
			params: z.object({ artifact: name }),
			answer: "*/*",
			ranges: true,
			errors: ["not_found", "precondition"],
		},
	),
};

export function artifactHandlers({ artifacts }: EdgeDeps): HandlersOf<typeof ARTIFACT_ROUTES> {
	return {
		async getArtifact({ params: { artifact } }, { caller, headers, outgoing }) {
			const found = await artifacts.find(artifact, principalOfCaller(caller));
			if (!found) throw new NexusError("not_found", `there is no artifact ${artifact}`);
			whenEnded(caller, outgoing, () => outgoing.destroy());
			return sendArtifact(artifacts, found, headers.get("range"));
		},
	};
}

function sendArtifact(artifacts: ArtifactReader, artifact: ArtifactFile, wanted: string | null): Response {
	const { id, complete, sizeBytes } = artifact;
	if (!complete) throw new NexusError("precondition", `the artifact ${id} is not whole yet`);
	const range = rangeOf(wanted, sizeBytes);
	if (range === "beyond")
		return new Response(null, { status: 416, headers: { "Content-Range": `bytes */${sizeBytes}` } });
	const { from, to } = range ?? { from: 0, to: sizeBytes };
	const body = Readable.toWeb(Readable.from(artifacts.stream(artifact, from, to), { objectMode: false }));
	return new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, {
		status: range ? 206 : 200,
		headers: {
			...headersOf(artifact),
			"Content-Length": String(to - from),
			...(range && { "Content-Range": `bytes ${from}-${to - 1}/${sizeBytes}` }),
		},
	});
}

const headersOf = ({ name, mimeType, sha256 }: ArtifactFile): Record<string, string> => ({
	"Content-Type": mimeType,
	"Content-Disposition": disposition(name),
	"X-Content-Type-Options": "nosniff",
	"Content-Security-Policy": "sandbox; default-src 'none'",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control": "private, no-store",
	"Accept-Ranges": "bytes",
	...(sha256 !== undefined && { ETag: `"${sha256}"` }),
});

/** Plain for old readers, and in UTF-8 for all others (RFC 6266). */
function disposition(name: string): string {
	const plain = name.replace(/[^A-Za-z0-9 ._-]/g, "_");
	const exact = encodeURIComponent(name.toWellFormed()).replace(
		/['()*]/g,
		(sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
	);
	return `attachment; filename="${plain}"; filename*=UTF-8''${exact}`;
}

/** The first byte, and the one behind the last. Undefined: all of it, also where the header is not understood (RFC 9110, 14.2). */
function rangeOf(header: string | null, sizeBytes: number): { from: number; to: number } | "beyond" | undefined {
	const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
	if (first === "" && last === "") return undefined;
	if (first === "") {
		const count = Math.min(Number(last), sizeBytes);
		return count === 0 ? "beyond" : { from: sizeBytes - count, to: sizeBytes };
	}
	const from = Number(first);
	if (last !== "" && Number(last) < from) return undefined;
	if (from >= sizeBytes) return "beyond";
	return { from, to: last === "" ? sizeBytes : Math.min(Number(last) + 1, sizeBytes) };
}
