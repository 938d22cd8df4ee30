/** `T` in which a field that may be undefined may also be absent. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
	[K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Leaves out the undefined fields, for readers that enumerate an object or spread it over another. */
export const defined = <T extends object>(fields: T): Defined<T> =>
	Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
