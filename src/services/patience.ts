/** How long whoever asks waits for a store that refuses to write, such as on a full disk, before it is told so. */

export const ADMIT_MS_MAX = 1000;
