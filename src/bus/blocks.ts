/** Pieces of memory that are used again and again: allocating one costs more than filling it. */

const BLOCK_BYTES = 4096;
/** Given back beyond this they are let go: a peak must not be held for ever. */
const KEPT_MAX = 1024;
/** Memory is asked for in slabs: one piece by itself costs almost as much as all of a slab. */
const BLOCKS_PER_SLAB = 16;

const kept: Buffer[] = [];

/** With room for so many bytes; what is in it is of no meaning. */
export function takeBlock(bytes: number): Buffer {
	if (bytes > BLOCK_BYTES) return Buffer.allocUnsafeSlow(bytes);
	const block = kept.pop();
	if (block) return block;
	const slab = Buffer.allocUnsafeSlow(BLOCKS_PER_SLAB * BLOCK_BYTES);
	for (let n = 1; n < BLOCKS_PER_SLAB; n++) kept.push(slab.subarray(n * BLOCK_BYTES, (n + 1) * BLOCK_BYTES));
	return slab.subarray(0, BLOCK_BYTES);
}

export function giveBlock(block: Buffer): void {
	if (block.length === BLOCK_BYTES && kept.length < KEPT_MAX) kept.push(block);
}
