/** The names of one chat by phone number. */

import type { Target } from "@nexus-stream/adapter";

/** Numbers are the same without the marks that people write between digits. */
export const chatNames = ({ to }: Target): readonly string[] => [to.replace(/[\s().-]/g, "")];
