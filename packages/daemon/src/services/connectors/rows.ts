/** Connectors: model providers that a person has added, with their sealed keys. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface StoredConnector {
	id: string;
	/** The application that may use it; left out: all. */
	appId?: string;
	providerType: string;
	endpoint?: string;
	/** Encrypted: the Ledger never sees a key. */
	sealedKey?: string;
	/** The part of the key that lists show. */
	keyHint?: string;
	enabled: boolean;
	defaultModel?: string;
	models: readonly string[];
	kinds: readonly string[];
	createdAt: number;
	updatedAt: number;
	/** Counts its changes from 1. */
	revision: number;
}

export interface ConnectorRows {
	get(id: string): Reading<StoredConnector | undefined>;
	/** By id. */
	list(): Reading<StoredConnector[]>;
}

export interface ConnectorOps {
	/** An id that is taken is a duplicate. */
	add(connector: StoredConnector, connectorsMax: number): void;
	/** A conflict unless the stored one has the revision before. */
	replace(connector: StoredConnector): void;
	/** Removes a connector; an unknown id is a conflict. */
	remove(id: string): void;
}

export const connectorWrites = writesOf<ConnectorOps>("connectors", ["add", "replace", "remove"]);
