/** Artifacts on their way out: in pieces, as a stream, or whole for a model call. */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { type Principal, seesApp } from "../kit/principal.ts";
import type { ArtifactFiles } from "./files.ts";
import { checkOffset, PIECE_BYTES_MAX, tooLarge } from "./limits.ts";
import type { ArtifactInfo, Transfer, Transfers } from "./port.ts";
import type { ArtifactRows } from "./rows.ts";

export interface DownloadParts {
	rows: { artifacts: ArtifactRows };
	clock: Clock;
	files: ArtifactFiles;
	transfers: Transfers;
	transferIdleMs: number;
}

/** The part of the service that reads. */
export abstract class Downloads {
	readonly #parts: DownloadParts;
	/** By artifact and reader. */
	readonly #inPieces = new Map<string, Transfer>();

	constructor(parts: DownloadParts) {
		this.#parts = parts;
	}

	find(id: string, principal: Principal): Promise<ArtifactInfo | undefined> {
		return this.#get(id, (appId) => seesApp(principal, appId));
	}

	async read(id: string, offset: number, bytesMax: number, principal: Principal) {
		const artifact = wholeOne(id, await this.find(id, principal));
		const { sizeBytes } = artifact;
		checkOffset(offset, sizeBytes);
		const length = Math.min(Math.max(1, bytesMax), PIECE_BYTES_MAX, sizeBytes - offset);
		const transfer = this.#inPiecesOf(artifact, offset, principal);
		transfer.check();
		const chunk = await this.#parts.files.read(id, offset, length);
		transfer.reach(offset + length);
		if (offset + length === sizeBytes) transfer.complete();
		return { artifact, chunk };
	}

	async *stream(artifact: ArtifactInfo, from: number, to: number): AsyncGenerator<Uint8Array> {
		wholeOne(artifact.id, artifact);
		const transfer = this.#begin(artifact);
		let reached = from;
		try {
			for await (const chunk of this.#parts.files.stream(artifact.id, from, to)) {
				await transfer.ready();
				reached += chunk.length;
				transfer.reach(reached);
				yield chunk;
			}
			if (reached === to) transfer.complete();
		} finally {
			transfer.fail(new NexusError("aborted", "the reader went away"));
		}
	}

	async whole(id: string, appId: string, bytesMax: number) {
		const artifact = wholeOne(id, await this.#get(id, (owner) => owner === appId));
		if (artifact.sizeBytes > bytesMax) throw tooLarge(bytesMax);
		return { artifact, data: await this.#parts.files.read(id, 0, artifact.sizeBytes) };
	}

	async #get(id: string, isVisible: (appId: string) => boolean): Promise<ArtifactInfo | undefined> {
		const { rows, clock } = this.#parts;
		const row = await rows.artifacts.get(id);
		return row && isVisible(row.appId) && row.expiresAt > clock.now() ? row : undefined;
	}

	/** The pieces that one caller reads of one artifact are one transfer. */
	#inPiecesOf(artifact: ArtifactInfo, offset: number, { appId = "", address }: Principal): Transfer {
		const key = [artifact.id, appId, address].join(" ");
		const idleSince = this.#parts.clock.now() - this.#parts.transferIdleMs;
		for (const [other, { info }] of this.#inPieces) {
			const isLong = info.state === "canceled" && info.updatedAt < idleSince;
			if (info.state === "completed" || info.state === "failed" || isLong) this.#inPieces.delete(other);
		}
		const known = this.#inPieces.get(key);
		if (known && (known.info.state !== "canceled" || offset > 0)) return known;
		const begun = this.#begin(artifact);
		this.#inPieces.set(key, begun);
		return begun;
	}

	#begin({ appId, name, id, sizeBytes, sha256 }: ArtifactInfo): Transfer {
		const { transfers } = this.#parts;
		return transfers.begin({ kind: "download", appId, name, artifactId: id, totalBytes: sizeBytes, sha256 });
	}
}

export const noArtifact = (id: string) => new NexusError("not_found", `there is no artifact ${id}`);

function wholeOne(id: string, artifact: ArtifactInfo | undefined): ArtifactInfo {
	if (!artifact) throw noArtifact(id);
	if (!artifact.complete) throw new NexusError("precondition", `the artifact ${id} is not whole yet`);
	return artifact;
}
