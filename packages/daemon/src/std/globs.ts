/** Names with a `*` at the end that stands for any rest. */

export const fitsGlob = (name: string, glob: string): boolean =>
	glob.endsWith("*") ? name.startsWith(glob.slice(0, -1)) : name === glob;

export const fitsSome = (name: string, globs: readonly string[]): boolean => globs.some((glob) => fitsGlob(name, glob));

/** Globs for the names that both lists allow. */
export function commonGlobs(some: readonly string[], others: readonly string[]): string[] {
	const both = some.flatMap((one) =>
		others.flatMap((other) => (fitsGlob(other, one) ? [other] : fitsGlob(one, other) ? [one] : [])),
	);
	return [...new Set(both)];
}
