/** Looking up a name from outside in an object that serves as a map: `constructor` and `__proto__` are not entries. */

export const own = <T>(map: Readonly<Record<string, T>> | undefined, name: string): T | undefined =>
	map !== undefined && Object.hasOwn(map, name) ? map[name] : undefined;
