/** An IP address, or a block of them in CIDR notation, as people write it in a configuration. */

import { isIP } from "node:net";

export function isAddressBlock(text: string): boolean {
	const [address = "", bits, ...rest] = text.split("/");
	if (isIP(address) === 0 || address.includes("%") || rest.length > 0) return false;
	return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isIP(address) === 4 ? 32 : 128));
}
