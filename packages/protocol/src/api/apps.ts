/** The JSON of the HTTP API about applications. */

export interface AppJson {
	app_id: string;
	name: string;
	/** Milliseconds since the epoch. */
	created_at: number;
	/** Since when its token is worth nothing. */
	removed_at?: number;
	/** Everything that is stored for it. */
	stored_bytes?: number;
	/** What it may store: more is refused. */
	stored_bytes_max?: number;
	stored?: AppStoredJson;
}

/** In bytes, by what they are. */
export interface AppStoredJson {
	jobs: number;
	workflows: number;
	logs: number;
	artifacts: number;
	messages: number;
}

export interface AppListJson {
	apps: AppJson[];
}

export interface AppRequest {
	app_id: string;
	/** For people; the id when left out. */
	name?: string;
}

export interface AppAddedJson {
	app: AppJson;
	/** Told once: only its hash is kept. */
	token: string;
}

export interface AppClearedJson {
	app_id: string;
	/** What is still stored for it. */
	stored_bytes: number;
	stored_bytes_max: number;
}

export interface AppRemovedJson {
	removed: true;
}
