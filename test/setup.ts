/** Before any test of a run: what tests start as processes is built once. */

import { bundleForTests } from "../scripts/bundle.ts";

export const setup = bundleForTests;
