/** Environment variables, as an argument. */

export type Environment = Readonly<Record<string, string | undefined>>;
