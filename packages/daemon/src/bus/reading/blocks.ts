/** Pieces of memory that are used again and again: allocating one costs more than filling it. */

const BLOCK_BYTES = 4096;
/** As many as all tails together may hold. What is given back beyond this is let go. Each is memory of its own: one that is kept holds no others. */
const KEPT_MAX = 4096;

const kept: Buffer[] = [];

/** With room for so many bytes; what is in it is of no meaning. */
export function takeBlock(bytes: number): Buffer {
	if (bytes > BLOCK_BYTES) return Buffer.allocUnsafeSlow(bytes);
	return kept.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
}

export function giveBlock(block: Buffer): void {
	if (block.length === BLOCK_BYTES && kept.length < KEPT_MAX) kept.push(block);
}
