/** Code that is loaded when it is first needed. The next caller tries a failed load again. */

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
