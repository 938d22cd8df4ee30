/** Code that is loaded when it is first needed. A load that failed is tried again by whoever asks next. */

export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
	let loaded: Promise<T> | undefined;
	return () => {
		loaded ??= load().catch((cause: unknown) => {
			loaded = undefined;
			throw cause;
		});
		return loaded;
	};
}
