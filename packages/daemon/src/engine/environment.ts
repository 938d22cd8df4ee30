/** Environment variables, as an argument. */

export type EnvironmentVariables = Readonly<Record<string, string | undefined>>;
