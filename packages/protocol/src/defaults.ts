/** Options over their defaults. */

type Merged<Defaults, Given> = Omit<Given, keyof Defaults> & {
	[K in keyof Defaults]: K extends keyof Given ? Exclude<Given[K], undefined> | Defaults[K] : Defaults[K];
};

/** The given values; the default where a value is absent or undefined. */
export function withDefaults<Defaults extends object, Given extends object>(
	defaults: Defaults,
	given: Given | undefined,
): Merged<Defaults, Given> {
	const stated = Object.entries(given ?? {}).filter(([, value]) => value !== undefined);
	return { ...defaults, ...Object.fromEntries(stated) } as Merged<Defaults, Given>;
}
