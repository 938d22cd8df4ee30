/** Artifacts: a file with a random name for the bytes, a row for what is known of it. Whole means: the file was synced and renamed, then its row says so. */

import { createHash, randomBytes } from "node:crypto";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import { ADMIT_MS_MAX, type Bus } from "../../bus/bus.ts";
import { stopping } from "../kit/durable-work.ts";
import { appOf, type Principal } from "../kit/principal.ts";
import type { Quota } from "../kit/quota.ts";
import { Downloads, noArtifact } from "./downloads.ts";
import { type ArtifactFiles, artifactFiles } from "./files.ts";
import {
	ARTIFACT_LIMITS,
	type ArtifactLimits,
	checkedAnnouncement,
	checkOffset,
	PIECE_BYTES_MAX,
	safeMimeType,
	tooLarge,
} from "./limits.ts";
import type { ArtifactInfo, ArtifactPiece, ArtifactService, NewArtifact, Transfer } from "./port.ts";
import { type ArtifactRows, artifactWrites, type StoredArtifact } from "./rows.ts";
import { TransferTable } from "./transfers.ts";

export interface ArtifactsDeps {
	/** The folder for their files. */
	dir: string;
	bus: Pick<Bus, "write">;
	rows: { artifacts: ArtifactRows };
	clock: Clock;
	limits?: Partial<ArtifactLimits>;
	/** Left out: artifacts alone have limits. */
	quota?: Pick<Quota, "check">;
}

const newArtifactId = () => `art_${randomBytes(16).toString("hex")}`;
/** Lock key for adding and removing rows; no artifact's id looks like this. */
const ROOM = "room";
/** Rows of one step of a sweep. */
const SWEEP_ROWS = 500;

export class StoredArtifacts extends Downloads implements ArtifactService {
	readonly transfers: TransferTable;
	readonly #deps: ArtifactsDeps;
	readonly #limits: ArtifactLimits;
	readonly #files: ArtifactFiles;
	readonly #queue = createKeyedQueue();
	readonly #closed = new AbortController();
	/** Files that have no row yet. */
	readonly #storing = new Set<string>();
	readonly #uploads = new Map<string, Transfer>();

	constructor(deps: ArtifactsDeps) {
		const limits = withDefaults(ARTIFACT_LIMITS, deps.limits);
		const { transferIdleMs } = limits;
		const files = artifactFiles(deps.dir);
		const transfers = new TransferTable(deps.clock, transferIdleMs);
		super({ ...deps, files, transfers, transferIdleMs });
		this.#deps = deps;
		this.#limits = limits;
		this.#files = files;
		this.transfers = transfers;
	}

	async store(given: NewArtifact, data: Uint8Array | AsyncIterable<Uint8Array>): Promise<ArtifactInfo> {
		const artifact = { ...given, mimeType: safeMimeType(given.mimeType) };
		const id = newArtifactId();
		this.#storing.add(id);
		try {
			const known = data instanceof Uint8Array ? data.length : 0;
			await this.#checkRoom(artifact.appId, known);
			const written = await this.#write(id, data instanceof Uint8Array ? [data] : data);
			await this.#files.finish(id);
			const row = { ...this.#row(id, { ...artifact, ...written }), complete: true };
			const kept = await this.#add(row, ({ complete }) => complete);
			if (kept.id !== id) await this.#files.remove(id);
			return kept;
		} catch (cause) {
			await this.#files.remove(id);
			throw cause;
		} finally {
			this.#storing.delete(id);
		}
	}

	async #write(id: string, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
		const { artifactBytesMax } = this.#limits;
		const hash = createHash("sha256");
		let sizeBytes = await this.#files.write(id, 0, new Uint8Array());
		for await (const piece of pieces) {
			if (sizeBytes + piece.length > artifactBytesMax) throw tooLarge(artifactBytesMax);
			hash.update(piece);
			sizeBytes = await this.#files.write(id, sizeBytes, piece);
		}
		return { sizeBytes, sha256: hash.digest("hex") };
	}

	#row(id: string, { appId, name, mimeType, sizeBytes, sha256 }: NewArtifact & { sizeBytes: number; sha256?: string }) {
		const createdAt = this.#deps.clock.now();
		const expiresAt = createdAt + this.#limits.ageMsMax;
		return { id, appId, name, mimeType, sizeBytes, sha256, createdAt, expiresAt, complete: false };
	}

	/**
	 * The same content under the same name is the same artifact, so what is sent again makes no second one. One at a time, so that two
	 * together do not take what is left once.
	 */
	#add(row: StoredArtifact, mayBe: (same: StoredArtifact) => boolean): Promise<StoredArtifact> {
		const { bus, rows } = this.#deps;
		return this.#inTurn(ROOM, async () => {
			const same = await rows.artifacts.same(row);
			if (same && mayBe(same)) {
				await bus.write([artifactWrites.renew(same.id, row.expiresAt)], ADMIT_MS_MAX);
				return { ...same, expiresAt: row.expiresAt };
			}
			await this.#checkRoom(row.appId, row.sizeBytes);
			if (!row.complete) await this.#checkUploads(row.appId);
			await bus.write([artifactWrites.add(row)], ADMIT_MS_MAX);
			return row;
		});
	}

	async #checkRoom(appId: string, sizeBytes: number): Promise<void> {
		const { artifactBytesMax, bytesPerAppMax, bytesMax, countPerAppMax } = this.#limits;
		if (sizeBytes > artifactBytesMax) throw tooLarge(artifactBytesMax);
		const { artifacts } = this.#deps.rows;
		const own = await artifacts.usage(appId);
		if (own.count >= countPerAppMax) throw noRoom(`${appId} has ${countPerAppMax} artifacts already`);
		if (own.bytes + sizeBytes > bytesPerAppMax)
			throw noRoom(`${sizeBytes} bytes more are above the ${bytesPerAppMax} that ${appId} may keep`);
		const all = await artifacts.usage();
		if (all.bytes + sizeBytes > bytesMax) throw noRoom(`${sizeBytes} bytes more are above the ${bytesMax} of all`);
		await this.#deps.quota?.check(appId, sizeBytes);
	}

	async #checkUploads(appId: string): Promise<void> {
		const { uploadsMax, uploadsPerAppMax } = this.#limits;
		const { all, own } = await this.#deps.rows.artifacts.unfinishedCount(appId);
		const what =
			own >= uploadsPerAppMax ? `${own} uploads of ${appId}` : all >= uploadsMax ? `${all} uploads` : undefined;
		if (what === undefined) return;
		throw new NexusError("busy", `${what} are not whole: finish or cancel one first`, { reason: "QUOTA_EXCEEDED" });
	}

	async upload(piece: ArtifactPiece, principal: Principal) {
		if (piece.chunk.length > PIECE_BYTES_MAX) throw tooLarge(PIECE_BYTES_MAX);
		const appId = appOf(principal, piece.appId);
		const row =
			piece.id === undefined
				? await this.#add(this.#row(newArtifactId(), checkedAnnouncement(appId, piece)), () => true)
				: await this.#owned(piece.id, appId);
		return this.#inTurn(row.id, () => this.#take(row.id, piece));
	}

	async #owned(id: string, appId: string): Promise<StoredArtifact> {
		const row = await this.#deps.rows.artifacts.get(id);
		if (row?.appId !== appId) throw noArtifact(id);
		return row;
	}

	async #take(id: string, { offset, chunk }: ArtifactPiece) {
		// Another piece may have completed it, or a caller cancelled it.
		const row = await this.#deps.rows.artifacts.get(id);
		if (!row) throw noArtifact(id);
		if (row.complete) return { artifact: row, receivedBytes: row.sizeBytes, transferId: "" };
		const transfer = this.#upload(row);
		transfer.check();
		checkOffset(offset + chunk.length, row.sizeBytes);
		let receivedBytes = await this.#files.received(id);
		if (offset > receivedBytes)
			throw new NexusError("precondition", `the next piece begins at ${receivedBytes}, not at ${offset}`);
		const fresh = chunk.subarray(receivedBytes - offset);
		if (fresh.length > 0 || receivedBytes === 0) receivedBytes = await this.#files.write(id, receivedBytes, fresh);
		transfer.reach(receivedBytes);
		const artifact = receivedBytes === row.sizeBytes ? await this.#finish(row, transfer) : row;
		return { artifact, receivedBytes, transferId: transfer.info.id };
	}

	async #finish(row: StoredArtifact, transfer: Transfer): Promise<ArtifactInfo> {
		const sha256 = await this.#files.sum(row.id);
		if (row.sha256 !== undefined && row.sha256 !== sha256) {
			const message = `the bytes have the sha256 ${sha256}, not ${row.sha256}: upload again`;
			const mismatch = new NexusError("invalid", message, { reason: "CHECKSUM_MISMATCH" });
			await this.#remove(row.id);
			transfer.fail(mismatch);
			throw mismatch;
		}
		await this.#files.finish(row.id);
		await this.#deps.bus.write([artifactWrites.complete(row.id, sha256)]);
		transfer.complete({ sha256 });
		this.#uploads.delete(row.id);
		return { ...row, sha256, complete: true };
	}

	#upload({ id, appId, name, sizeBytes, sha256 }: StoredArtifact): Transfer {
		const known = this.#uploads.get(id);
		if (known) return known;
		const begun = this.transfers.begin(
			{ kind: "upload", appId, name, artifactId: id, totalBytes: sizeBytes, sha256 },
			() => this.#inTurn(id, () => this.#remove(id)),
		);
		this.#uploads.set(id, begun);
		return begun;
	}

	/** The row first: a file without one is removed by the next sweep. */
	async #remove(id: string): Promise<void> {
		await this.#deps.bus.write([artifactWrites.remove(id)]);
		await this.#files.remove(id);
		this.#uploads.delete(id);
	}

	async recover(): Promise<void> {
		for (const row of await this.#deps.rows.artifacts.unfinished()) {
			await this.#files.reopen(row.id);
			this.#upload(row).reach(await this.#files.received(row.id));
		}
	}

	async sweep(): Promise<number> {
		const { rows, clock } = this.#deps;
		let removed = 0;
		for (;;) {
			const expired = await rows.artifacts.expired(clock.now(), SWEEP_ROWS);
			for (const { id } of expired) if (await this.#expire(id)) removed++;
			if (expired.length < SWEEP_ROWS) break;
		}
		removed += await this.#sweepUploads();
		for (const id of await this.#files.ids()) {
			if (this.#storing.has(id) || (await rows.artifacts.get(id))) continue;
			await this.#files.remove(id);
			removed++;
		}
		this.transfers.sweep();
		return removed;
	}

	/** Removes uploads that get no more pieces: they hold memory, and the space that they announced. */
	async #sweepUploads(): Promise<number> {
		const idleSince = this.#deps.clock.now() - this.#limits.uploadIdleMs;
		let removed = 0;
		for (const [id, { info }] of [...this.#uploads])
			if (info.updatedAt <= idleSince && (await this.#expire(id, Number.POSITIVE_INFINITY))) removed++;
		return removed;
	}

	async clear(appId: string): Promise<void> {
		for (;;) {
			const some = await this.#deps.rows.artifacts.of(appId, SWEEP_ROWS);
			for (const { id } of some) await this.#expire(id, Number.POSITIVE_INFINITY);
			if (some.length < SWEEP_ROWS) return;
		}
	}

	/** Waits while the same content is being added, because the adding caller may get this artifact. */
	#expire(id: string, now = this.#deps.clock.now()): Promise<boolean> {
		const { rows } = this.#deps;
		return this.#inTurn(id, () =>
			this.#inTurn(ROOM, async () => {
				const row = await rows.artifacts.get(id);
				if (!row || row.expiresAt > now) return false;
				this.#uploads.get(id)?.fail(new NexusError("expired", "it was not finished in time"));
				await this.#remove(id);
				return true;
			}),
		);
	}

	#inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
		return this.#queue.run(key, work, this.#closed.signal);
	}

	async close(): Promise<void> {
		this.#closed.abort(stopping());
		this.transfers.close();
	}
}

const noRoom = (why: string) =>
	new NexusError("busy", `${why}: artifacts go after a while`, { reason: "QUOTA_EXCEEDED" });
