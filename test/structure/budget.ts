/** Every limit that the checks of this folder hold the published sources to. Raising one needs a commit that says why. */

export const FUNCTION_LINES_MAX = 70;
export const FILE_LINES_MAX = 300;
/** A shorter file whose only importer is in the same folder belongs into that importer. */
export const FILE_LINES_MIN = 40;
export const FOLDER_ENTRIES_MAX = 16;
/** Names that one file exports from others. */
export const DOOR_NAMES_MAX = 20;
export const INTERFACE_METHODS_MAX = 9;

/** Short files that may stand alone: every platform has the same ones, so that knowing one platform is knowing all. */
export const SIBLING_FILES =
	/^(?:adapter|platforms)\/(?!conformance|draft|gate|markdown|memory|net|platform\/|serve)[^/]+\/(?:session|inbound|format|chat|faults|api|pace|buttons)\.ts$/;

/** Interfaces that may have more methods, with the reason. */
export const WIDE_INTERFACES: Readonly<Record<string, string>> = {};

/** Doors that may export more names, with the reason. */
export const WIDE_DOORS: Readonly<Record<string, string>> = {
	"protocol/protocol.ts": "the root of a published package: its whole vocabulary, which 370 files import by one name",
};

/** Files that may wait by hand, with the reason. */
export const WAITING_FILES: Readonly<Record<string, string>> = {
	"protocol/clock.ts": "the system's clock is made of the system's timers",
	"protocol/retry.ts": "the one place for back-off and sleeps",
};

/** Lines of TypeScript by folder, generated code excluded. */
export const FOLDER_LINES_MAX: Readonly<Record<string, number>> = {
	".": 30,
	adapter: 7370,
	broker: 4780,
	bus: 5720,
	cli: 3990,
	client: 1820,
	edge: 8080,
	engine: 9290,
	lab: 4310,
	ledger: 2210,
	nex: 10230,
	platforms: 7510,
	protocol: 2300,
	runtime: 4340,
	services: 13730,
	std: 2440,
	web: 8300,
};
