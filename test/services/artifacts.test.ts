import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { StoredArtifacts } from "../../packages/daemon/src/services/artifacts/artifacts.ts";
import type { ArtifactLimits } from "../../packages/daemon/src/services/artifacts/limits.ts";
import type { ArtifactPiece, Artifacts, TransferInfo } from "../../packages/daemon/src/services/artifacts/port.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { manualClock } from "../clock.ts";
import { freshFolder } from "../runtime/folder.ts";
import { storeForTest } from "../store.ts";
import { appPrincipal, OWNER } from "./jobs-rig.ts";
import { rejectsWith } from "./parts.ts";

const APP = appPrincipal("app");

function rig({
	limits,
	folder = freshFolder(),
	dies = false,
}: {
	limits?: Partial<ArtifactLimits>;
	folder?: string;
	dies?: boolean;
} = {}) {
	const store = storeForTest({ path: join(folder, "nexus.db"), dies });
	const clock = manualClock(1_000_000);
	const dir = join(folder, "artifacts");
	const artifacts = new StoredArtifacts({ ...store, dir, clock, limits });
	const seen: TransferInfo[] = [];
	artifacts.transfers.subscribe((transfer) => void seen.push(transfer));
	return { ...store, artifacts, clock, dir, folder, seen, files: () => (existsSync(dir) ? readdirSync(dir) : []) };
}

const sumOf = (data: Uint8Array) => createHash("sha256").update(data).digest("hex");
const bytes = (text: string) => Buffer.from(text);

const pieceOf = (data: Uint8Array, fields: Partial<ArtifactPiece> = {}): ArtifactPiece => ({
	appId: "",
	name: "notes.txt",
	mimeType: "text/plain",
	sizeBytes: data.length,
	sha256: sumOf(data),
	offset: 0,
	chunk: data,
	...fields,
});

const readAll = async (artifacts: Artifacts, id: string, principal = APP) => {
	const parts: Uint8Array[] = [];
	for (let offset = 0; ; ) {
		const { artifact, chunk } = await artifacts.read(id, offset, 4, principal);
		parts.push(chunk);
		offset += chunk.length;
		if (offset >= artifact.sizeBytes) return Buffer.concat(parts).toString();
	}
};

describe("an artifact", () => {
	it("Z20: is stored whole under a random name, with its checksum, and read by pieces", async () => {
		const { artifacts, files, dir } = rig();
		const stored = await artifacts.store(
			{ appId: "app", name: "../../etc/passwd", mimeType: "text/plain" },
			bytes("hello"),
		);
		expect(stored).toMatchObject({ complete: true, sizeBytes: 5, sha256: sumOf(bytes("hello")) });
		expect(stored.id).toMatch(/^art_[0-9a-f]{32}$/);
		expect(files()).toEqual([stored.id]);
		expect(readFileSync(join(dir, stored.id), "utf8")).toBe("hello");
		expect(await readAll(artifacts, stored.id)).toBe("hello");
		await rejectsWith(artifacts.read(stored.id, 6, 4, APP), "invalid");
	});

	it("Z25: is not there for another application", async () => {
		const { artifacts } = rig();
		const { id } = await artifacts.store({ appId: "app", name: "a", mimeType: "text/plain" }, bytes("hello"));
		const other = appPrincipal("other");
		expect(await artifacts.find(id, other)).toBeUndefined();
		await rejectsWith(artifacts.read(id, 0, 9, other), "not_found");
		await rejectsWith(artifacts.whole(id, "other", 99), "not_found");
		await rejectsWith(artifacts.upload(pieceOf(bytes("x"), { id }), other), "not_found");
		expect((await artifacts.whole(id, "app", 99)).data.toString()).toBe("hello");
		expect(await artifacts.find(id, OWNER)).toMatchObject({ id });
	});

	it("I11: is limited in its own size, its application's bytes and count, and all bytes", async () => {
		const limits = { artifactBytesMax: 10, bytesPerAppMax: 14, bytesMax: 20, countPerAppMax: 3 };
		const { artifacts, files } = rig({ limits });
		let made = 0;
		const store = (appId: string, size: number) =>
			artifacts.store(
				{ appId, name: "a", mimeType: "text/plain" },
				(async function* () {
					yield new Uint8Array(size).fill(made++);
				})(),
			);
		await rejectsWith(store("app", 11), "too_large");
		await store("app", 10);
		await rejectsWith(store("app", 5), "busy", "QUOTA_EXCEEDED");
		await expect(artifacts.upload(pieceOf(new Uint8Array(5)), APP)).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED" });
		await expect(Promise.all([store("app", 4), store("app", 4)])).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED" });
		await expect(store("b", 7)).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED" });
		for (const _ of [1, 2, 3]) await store("c", 1);
		await expect(store("c", 1)).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED" });
		expect(files()).toHaveLength(5);
	});

	it("a store that fails half-way leaves nothing", async () => {
		const { artifacts, files, rows } = rig();
		const broken = async function* () {
			yield bytes("half");
			throw new Error("cut");
		};
		await expect(artifacts.store({ appId: "app", name: "a", mimeType: "a/b" }, broken())).rejects.toThrow("cut");
		expect(files()).toEqual([]);
		expect(await rows.artifacts.usage()).toEqual({ bytes: 0, count: 0 });
	});

	it("goes after its time, and so do files that belong to nothing", async () => {
		const { artifacts, clock, files, dir } = rig({ limits: { ageMsMax: 1000 } });
		const old = await artifacts.store({ appId: "app", name: "a", mimeType: "a/b" }, bytes("old"));
		clock.advance(600);
		const young = await artifacts.store({ appId: "app", name: "a", mimeType: "a/b" }, bytes("young"));
		const orphan = `art_${"0".repeat(32)}`;
		for (const name of [orphan, `${orphan.replace("0", "1")}.part`, "README"]) writeFileSync(join(dir, name), "x");
		clock.advance(400);
		expect(await artifacts.find(old.id, APP)).toBeUndefined();
		expect(await artifacts.sweep()).toBe(3);
		expect(files().toSorted()).toEqual(["README", young.id].toSorted());
	});
});

it("a sweep spares what is added again meanwhile", async () => {
	const { artifacts, clock, rows } = rig({ limits: { ageMsMax: 1000 } });
	const store = () => artifacts.store({ appId: "app", name: "a", mimeType: "a/b" }, bytes("same"));
	const { id } = await store();
	clock.advance(1000);
	const { expired } = rows.artifacts;
	rows.artifacts.expired = async (...args) => {
		const found = await expired(...args);
		expect((await store()).id).toBe(id);
		return found;
	};
	expect(await artifacts.sweep()).toBe(0);
	expect(await readAll(artifacts, id)).toBe("same");
});

describe("an upload", () => {
	const data = bytes("hello world");
	const first = pieceOf(data, { chunk: data.subarray(0, 5) });

	it("Z20: is resumed by offset; a piece that came before is taken once; the last one makes it whole", async () => {
		const { artifacts, files } = rig();
		const begun = await artifacts.upload(first, APP);
		expect(begun).toMatchObject({ receivedBytes: 5, artifact: { complete: false } });
		const { id } = begun.artifact;
		expect(files()).toEqual([`${id}.part`]);
		await rejectsWith(artifacts.read(id, 0, 4, APP), "precondition");
		expect((await artifacts.upload(first, APP)).artifact.id, "the first piece again").toBe(id);
		expect(await artifacts.upload({ ...first, id }, APP)).toMatchObject({ receivedBytes: 5 });
		const later = { ...first, id, offset: 8, chunk: data.subarray(8) };
		await expect(artifacts.upload(later, APP)).rejects.toMatchObject({ code: "precondition", message: /begins at 5/ });
		const overlapping = { ...first, id, offset: 3, chunk: data.subarray(3) };
		expect(await artifacts.upload(overlapping, APP)).toMatchObject({ receivedBytes: 11, artifact: { complete: true } });
		expect(await artifacts.upload(overlapping, APP), "again").toMatchObject({ receivedBytes: 11 });
		expect(files()).toEqual([id]);
		expect(await readAll(artifacts, id)).toBe("hello world");
		expect(await artifacts.upload(pieceOf(data), APP), "the same content").toMatchObject({ artifact: { id } });
	});

	it("with another checksum is refused, and nothing of it stays", async () => {
		const { artifacts, files, seen } = rig();
		const wrong = pieceOf(data, { sha256: sumOf(bytes("other")) });
		await rejectsWith(artifacts.upload(wrong, APP), "invalid", "CHECKSUM_MISMATCH");
		expect(files()).toEqual([]);
		expect(seen.at(-1)).toMatchObject({ kind: "upload", state: "failed" });
	});

	it("announces only what it may", async () => {
		const { artifacts } = rig();
		for (const fields of [
			{ name: "" },
			{ name: "a/b" },
			{ name: "a\nb" },
			{ name: "x".repeat(256) },
			{ mimeType: "text" },
			{ sizeBytes: -1 },
			{ sizeBytes: 1.5 },
			{ sha256: "abc" },
		])
			await expect(artifacts.upload(pieceOf(data, fields), APP), JSON.stringify(fields)).rejects.toMatchObject({
				code: "invalid",
			});
		await rejectsWith(artifacts.upload(pieceOf(new Uint8Array(1024 * 1024 + 1)), APP), "too_large");
		await rejectsWith(artifacts.upload(pieceOf(data, { appId: "other" }), APP), "forbidden");
		await rejectsWith(artifacts.upload(pieceOf(data, { sizeBytes: 3 }), APP), "invalid");
	});

	it("I11: so many of an application, and of all, may be unfinished; an idle one is removed with what it held", async () => {
		const { artifacts, clock, rows } = rig({ limits: { uploadsPerAppMax: 2, uploadsMax: 3, uploadIdleMs: 1000 } });
		const begin = (name: string, principal = APP) =>
			artifacts.upload(pieceOf(bytes(name), { name, chunk: bytes(name[0]!) }), principal);
		const refused = { code: "busy", reason: "QUOTA_EXCEEDED" };
		const [one] = [await begin("first one"), await begin("second")];
		await expect(begin("third")).rejects.toMatchObject(refused);
		expect((await begin("first one")).artifact.id).toBe(one.artifact.id);
		await begin("other", appPrincipal("other"));
		await expect(begin("more", appPrincipal("last"))).rejects.toMatchObject(refused);
		clock.advance(999);
		const go = pieceOf(bytes("first one"), { id: one.artifact.id, offset: 1, chunk: bytes("ir") });
		await artifacts.upload(go, APP);
		clock.advance(1);
		expect(await artifacts.sweep()).toBe(2);
		expect(await rows.artifacts.unfinishedCount("app")).toEqual({ all: 1, own: 1 });
		expect(artifacts.transfers.list(APP).filter(({ state }) => state === "running")).toHaveLength(1);
		expect(artifacts.transfers.list(APP).at(-1)).toMatchObject({ state: "failed", error: { code: "expired" } });
		await begin("third");
	});

	it("of nothing is whole at once", async () => {
		const { artifacts } = rig();
		expect(await artifacts.upload(pieceOf(new Uint8Array()), APP)).toMatchObject({
			artifact: { complete: true, sizeBytes: 0 },
		});
	});

	it.each([
		["before its last piece", 5],
		["between its name and its row", 11],
	])("continues after a crash %s", async (_, received) => {
		const dead = rig({ dies: true });
		const { artifact } = await dead.artifacts.upload(first, APP);
		const part = join(dead.dir, `${artifact.id}.part`);
		if (received === 11) {
			writeFileSync(join(dead.dir, artifact.id), data);
			writeFileSync(part, "");
		}
		const { artifacts } = rig({ folder: dead.folder });
		await artifacts.recover();
		expect(await artifacts.find(artifact.id, APP)).toMatchObject({ complete: false });
		expect(artifacts.transfers.list(APP)).toMatchObject([
			{ kind: "upload", state: "running", transferredBytes: received },
		]);
		const last = { ...first, id: artifact.id, offset: 5, chunk: data.subarray(5) };
		expect(await artifacts.upload(last, APP)).toMatchObject({ receivedBytes: 11, artifact: { complete: true } });
		expect(await readAll(artifacts, artifact.id)).toBe("hello world");
	});
});

describe("transfers", () => {
	const data = bytes("hello world");
	const first = pieceOf(data, { chunk: data.subarray(0, 5) });

	it("Z20: a paused upload takes no piece until it is resumed; a cancelled one is gone", async () => {
		const { artifacts, files, seen } = rig();
		const { transfers } = artifacts;
		const { artifact, transferId } = await artifacts.upload(first, APP);
		const next = { ...first, id: artifact.id, offset: 5, chunk: data.subarray(5, 6) };
		expect(await transfers.pause(transferId, APP)).toMatchObject({
			state: "paused",
			transferredBytes: 5,
			totalBytes: 11,
		});
		await rejectsWith(artifacts.upload(next, APP), "precondition");
		await transfers.resume(transferId, APP);
		expect(await artifacts.upload(next, APP)).toMatchObject({ receivedBytes: 6 });
		expect(await transfers.cancel(transferId, APP)).toMatchObject({ state: "canceled" });
		expect(files()).toEqual([]);
		await rejectsWith(artifacts.upload(next, APP), "not_found");
		expect(seen.map(({ state }) => state).filter((state, n, all) => state !== all[n - 1])).toEqual([
			...["running", "paused", "running", "canceled"],
		]);
		for (const change of ["pause", "resume", "cancel"] as const)
			await rejectsWith(transfers[change](transferId, APP), "precondition");
	});

	it("a download by pieces is one; paused it gives none, cancelled it has to begin again", async () => {
		const { artifacts } = rig();
		const { transfers } = artifacts;
		const { id } = await artifacts.store({ appId: "app", name: "a", mimeType: "a/b" }, data);
		await artifacts.read(id, 0, 4, APP);
		await artifacts.read(id, 4, 4, APP);
		const [download] = transfers.list(APP);
		expect(transfers.list(APP)).toHaveLength(1);
		expect(download).toMatchObject({ kind: "download", transferredBytes: 8, totalBytes: 11, sha256: sumOf(data) });
		await transfers.pause(download!.id, APP);
		await rejectsWith(artifacts.read(id, 8, 4, APP), "precondition");
		await transfers.cancel(download!.id, APP);
		await rejectsWith(artifacts.read(id, 8, 4, APP), "aborted");
		expect(await readAll(artifacts, id)).toBe("hello world");
		expect(transfers.list(APP).map(({ state }) => state)).toEqual(["canceled", "completed"]);
	});

	it("a download as a stream waits while it is paused, and breaks off when it is cancelled", async () => {
		const { artifacts } = rig();
		const { transfers } = artifacts;
		const artifact = await artifacts.store({ appId: "app", name: "a", mimeType: "a/b" }, new Uint8Array(300_000));
		const stream = artifacts.stream(artifact, 0, artifact.sizeBytes)[Symbol.asyncIterator]();
		await stream.next();
		const { id } = transfers.list(APP)[0]!;
		await transfers.pause(id, APP);
		let arrived = false;
		const next = stream.next().then(() => (arrived = true));
		await new Promise(setImmediate);
		expect(arrived).toBe(false);
		await transfers.resume(id, APP);
		await next;
		await transfers.cancel(id, APP);
		await rejectsWith(stream.next(), "aborted");
		expect(transfers.list(APP)).toMatchObject([{ state: "canceled" }]);
	});

	it("the daemon's own fetches are reported without what may be secret, and can be cancelled", async () => {
		const { artifacts, seen } = rig();
		const { transfers } = artifacts;
		const get = transfers.tracked(async () => new Response("picture"), "app");
		expect(await (await get("https://pictures.example/secret/cat.png?key=secret")).text()).toBe("picture");
		expect(seen.at(-1)).toMatchObject({ kind: "fetch", state: "completed", transferredBytes: 7 });
		expect(JSON.stringify(seen)).not.toContain("secret");
		const hanging = transfers.tracked(
			(_url, init) =>
				new Promise((_, reject) =>
					init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason as Error)),
				),
			"app",
		)("https://pictures.example/slow.png");
		await transfers.cancel(transfers.list(APP).at(-1)!.id, APP);
		await rejectsWith(hanging, "aborted");
		expect(seen.at(-1)).toMatchObject({ name: "pictures.example/slow.png", state: "canceled" });
	});

	it("a platform's attachment is reported, and cannot be paused", async () => {
		const { artifacts } = rig();
		const { transfers } = artifacts;
		const at = { startedAt: 1, updatedAt: 1 };
		const attachment = {
			id: "att_1",
			appId: "owner",
			kind: "attachment",
			name: "cat.jpg",
			totalBytes: -1,
			...at,
		} as const;
		transfers.report({ ...attachment, state: "running", transferredBytes: 1 });
		transfers.report({ ...attachment, state: "completed", transferredBytes: 9 });
		expect(transfers.list(OWNER)).toMatchObject([{ state: "completed", transferredBytes: 9 }]);
		await rejectsWith(transfers.pause("att_1", OWNER), "precondition");
		expect(transfers.list(APP)).toEqual([]);
		await rejectsWith(transfers.pause("att_1", APP), "not_found");
	});

	it("I11: a flood of those that are over is cut to the newest", () => {
		const { artifacts } = rig();
		for (let n = 0; n < 1000; n++)
			artifacts.transfers.begin({ kind: "fetch", appId: "app", name: `${n}`, totalBytes: -1 }).complete();
		const names = artifacts.transfers.list(APP).map(({ name }) => name);
		expect(names.length).toBeLessThanOrEqual(400);
		expect(names.at(-1)).toBe("999");
	});

	it("I11: transfers that are over go after an hour, and abandoned downloads end", async () => {
		const { artifacts, clock } = rig();
		const { id } = await artifacts.store({ appId: "app", name: "a", mimeType: "a/b" }, data);
		await artifacts.read(id, 0, 4, APP);
		clock.advance(10 * 60_000);
		await artifacts.sweep();
		expect(artifacts.transfers.list(APP)).toMatchObject([{ state: "failed", error: { code: "timeout" } }]);
		clock.advance(60 * 60_000);
		await artifacts.sweep();
		expect(artifacts.transfers.list(APP)).toEqual([]);
	});
});

it("a full disk says so", async () => {
	const { diskFailure } = await import("../../packages/daemon/src/services/artifacts/files.ts");
	const full = diskFailure(Object.assign(new Error("no space"), { code: "ENOSPC" }));
	expect(full).toBeInstanceOf(NexusError);
	expect(full).toMatchObject({ code: "unavailable", message: /disk is full/ });
});

it.each(["text/html\r\nSet-Cookie: a=b", "x".repeat(5000), "image/png; name=\u2603", ""])(
	"Z20: what is called %j is stored as bytes: a file is sent with its type in a header",
	async (mimeType) => {
		const { artifacts } = rig();
		const stored = await artifacts.store({ appId: "app", name: "a", mimeType }, bytes("hello"));
		expect(stored.mimeType).toBe("application/octet-stream");
	},
);
