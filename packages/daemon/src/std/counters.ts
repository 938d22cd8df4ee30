/** Counters with bounded labels: names that a model or a server makes up cannot fill the memory. `/metrics` reads them. */

export type Labels = Readonly<Record<string, string>>;

export interface Counters {
	add(counter: string, labels: Labels, amount?: number): void;
	read(): readonly Counted[];
}

export interface Counted {
	counter: string;
	labels: Labels;
	value: number;
}

/** Series of one counter; later ones count as `other`. */
const SERIES_MAX = 256;

export function createCounters(seriesMax: number = SERIES_MAX): Counters {
	const counted = new Map<string, Map<string, Counted>>();
	return {
		add(counter, labels, amount = 1) {
			const series = counted.get(counter) ?? new Map<string, Counted>();
			counted.set(counter, series);
			const key = JSON.stringify(labels);
			const isNew = !series.has(key) && series.size >= seriesMax;
			const kept = isNew ? Object.fromEntries(Object.keys(labels).map((name) => [name, "other"])) : labels;
			const keptKey = isNew ? JSON.stringify(kept) : key;
			const one = series.get(keptKey) ?? { counter, labels: kept, value: 0 };
			one.value += amount;
			series.set(keptKey, one);
		},
		read: () => [...counted.values()].flatMap((series) => [...series.values()].map((one) => ({ ...one }))),
	};
}
