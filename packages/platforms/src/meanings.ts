/** The meaning of a platform's own codes or words for a refusal, in the words of all platforms. */

import type { PlatformFault } from "@nexus-stream/adapter/port";

export type Meaning = readonly [fault: PlatformFault, advice: string];

/** A row is a fault, the advice for the operator, and all codes that mean it. */
export const meanings = <Code extends string | number>(
	...rows: readonly (readonly [...Meaning, ...codes: Code[]])[]
): ReadonlyMap<Code, Meaning> =>
	new Map(rows.flatMap(([fault, advice, ...codes]) => codes.map((code): [Code, Meaning] => [code, [fault, advice]])));
