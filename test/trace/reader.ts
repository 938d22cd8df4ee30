/** Where a traced token arrives. */

export interface Reader {
	shows(token: string): boolean;
	close(): Promise<void>;
}
