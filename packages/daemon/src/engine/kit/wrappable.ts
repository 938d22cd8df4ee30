/** A tool of an agent that is not ours, as far as it can be wrapped: its execution. */

export interface Wrappable {
	name: string;
	execute(
		id: string,
		params: never,
		signal: AbortSignal | undefined,
		onUpdate: never,
		...rest: never[]
	): Promise<unknown>;
}
