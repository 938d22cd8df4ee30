/** The same work, except that it begins only after the last time it was asked for is over. */
export function oneAtATime<Result>(work: () => Promise<Result>): () => Promise<Result> {
	let last: Promise<unknown> = Promise.resolve();
	return () => {
		const own = last.then(work);
		last = own.catch(() => {});
		return own;
	};
}
