/** The size of what base64 text stands for, without decoding it. */
export const base64Bytes = (data: string): number => Math.floor((data.replace(/=+$/, "").length * 3) / 4);
