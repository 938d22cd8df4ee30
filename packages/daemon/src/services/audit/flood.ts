/** Anybody can be refused: in a minute with many refusals the audit log tells of the first ones, and then how many more there were. */

const MINUTE_MS = 60_000;
const REPORTED_PER_MINUTE_MAX = 60;

export class Flood {
	#minute = 0;
	#reported = 0;
	#untold = 0;

	/** Undefined: this refusal is only counted. Otherwise the number of refusals that were only counted since the last recorded one. */
	next(now: number): { untold: number } | undefined {
		const minute = Math.floor(now / MINUTE_MS);
		if (minute !== this.#minute) this.#reported = 0;
		this.#minute = minute;
		if (this.#reported >= REPORTED_PER_MINUTE_MAX) {
			this.#untold++;
			return undefined;
		}
		this.#reported++;
		const untold = this.#untold;
		this.#untold = 0;
		return { untold };
	}
}
