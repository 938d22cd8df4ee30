/** What a phone calls the same chat. */

import type { Target } from "@nexus-stream/adapter";

/** Numbers are the same without the marks that people write between digits. */
export const chatNames = ({ to }: Target): readonly string[] => [to.replace(/[\s().-]/g, "")];
