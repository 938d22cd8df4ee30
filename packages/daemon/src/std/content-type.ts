/** Content types by the extension of a file's name, and back; and the size of content in base64. */

/** Where several extensions have one type, the usual one is first. */
const TYPE: Readonly<Record<string, string>> = {
	txt: "text/plain",
	md: "text/markdown",
	csv: "text/csv",
	html: "text/html",
	css: "text/css",
	js: "text/javascript",
	json: "application/json",
	map: "application/json",
	webmanifest: "application/manifest+json",
	pdf: "application/pdf",
	png: "image/png",
	jpg: "image/jpeg",
	jpeg: "image/jpeg",
	gif: "image/gif",
	webp: "image/webp",
	svg: "image/svg+xml",
	ico: "image/x-icon",
	mp3: "audio/mpeg",
	m4a: "audio/mp4",
	wav: "audio/wav",
	woff2: "font/woff2",
	bin: "application/octet-stream",
};

const EXTENSION = new Map(
	Object.entries(TYPE)
		.map(([extension, type]) => [type, extension] as const)
		.reverse(),
);

/** Without parameters; `application/octet-stream` where the extension says nothing. */
export function contentTypeOf(path: string): string {
	const extension = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "bin";
	return Object.hasOwn(TYPE, extension) ? TYPE[extension]! : "application/octet-stream";
}

/** Good enough for a person who saves the file: of an unknown type its subtype, or `bin`. */
export function extensionOf(contentType: string): string {
	const type = contentType.split(";")[0]!.trim().toLowerCase();
	const subtype = (type.split("/")[1] ?? "").replace(/^x-|\+.*$/g, "");
	return EXTENSION.get(type) ?? (/^[a-z0-9]{1,8}$/.test(subtype) ? subtype : "bin");
}

/** The size of what base64 text stands for, without decoding it. */
export const base64Bytes = (data: string): number => Math.floor((data.replace(/=+$/, "").length * 3) / 4);
