/** One name, one type: an exported type's name is not used for another one anywhere in the packages. */

import { expect, it } from "vitest";
import { readSources, sharedTypeNames } from "./measures.ts";

it("structure: names of exported types are unique across all packages", () =>
	expect(sharedTypeNames(readSources())).toEqual({}));
