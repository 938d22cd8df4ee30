/** The JSON of the HTTP API about applications. */

export interface AppJson {
	app_id: string;
	name: string;
	/** Milliseconds since the epoch. */
	created_at: number;
	/** Since when its token is worth nothing. */
	removed_at?: number;
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

export interface AppRemovedJson {
	removed: true;
}
