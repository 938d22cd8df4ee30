/** Artifacts: one row for each file that is kept or is being brought. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface StoredArtifact {
	/** Random: also the file's name. */
	id: string;
	appId: string;
	name: string;
	mimeType: string;
	/** As announced, until it is whole. */
	sizeBytes: number;
	/** The announced hash, until the artifact is complete. */
	sha256?: string;
	createdAt: number;
	expiresAt: number;
	complete: boolean;
}

export interface ArtifactUsage {
	/** Unfinished artifacts count with their announced size. */
	bytes: number;
	count: number;
}

export interface ArtifactRows {
	get(id: string): Reading<StoredArtifact | undefined>;
	/** The same content under the same name, whole or on its way. */
	same(artifact: Pick<StoredArtifact, "appId" | "name" | "sizeBytes" | "sha256">): Reading<StoredArtifact | undefined>;
	/** Not whole yet. */
	unfinished(): Reading<StoredArtifact[]>;
	/** How many are not whole yet, of all and of one application. */
	unfinishedCount(appId: string): Reading<{ all: number; own: number }>;
	/** Artifacts of an application, complete or not, at most `limit`. */
	of(appId: string, limit: number): Reading<StoredArtifact[]>;
	/** Expired at a time, at most so many. */
	expired(at: number, limit: number): Reading<StoredArtifact[]>;
	/** Usage of one application, or of all. */
	usage(appId?: string): Reading<ArtifactUsage>;
}

export interface StoredArtifactOps {
	add(artifact: StoredArtifact): void;
	/** Marks an unfinished artifact complete; any other is a conflict. */
	complete(id: string, sha256: string): void;
	renew(id: string, expiresAt: number): void;
	/** Removes the row; a missing row does not cause a conflict. */
	remove(id: string): void;
}

export const artifactWrites = writesOf<StoredArtifactOps>("artifacts", ["add", "complete", "renew", "remove"]);
