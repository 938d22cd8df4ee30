/** Which addresses from a model the page may use: none that runs code, none that is fetched without a click. */

const LINK_SCHEMES = new Set(["http:", "https:", "mailto:"]);
const IMAGE_DATA = /^data:image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)[;,]/i;
const DATA_URL_CHARS_MAX = 8_000_000;

/** The address as the browser reads it, when a click on it may leave the page; else undefined. */
export function linkUrl(text: string): string | undefined {
	let url: URL;
	try {
		url = new URL(text);
	} catch {
		// Relative or nonsense: it would point into this page's own origin, or nowhere.
		return undefined;
	}
	return LINK_SCHEMES.has(url.protocol) ? url.href : undefined;
}

/** A picture that is already here. An SVG inside `<img>` runs no script and loads nothing. */
export function imageUrl(text: string): string | undefined {
	return text.length <= DATA_URL_CHARS_MAX && IMAGE_DATA.test(text) ? text : undefined;
}

/** The payload of an image or audio part as an address; undefined when its content type is something else. */
export function mediaUrl(contentType: string, payload: string, kind: "image" | "audio"): string | undefined {
	const type = /^([a-z]+)\/[a-z0-9.+-]+/i.exec(contentType);
	if (type?.[1]?.toLowerCase() !== kind || payload.length > DATA_URL_CHARS_MAX) return undefined;
	if (kind === "image" && payload.startsWith("data:")) return imageUrl(payload);
	if (kind === "image" && payload.trimStart().startsWith("<")) {
		return imageUrl(`data:image/svg+xml,${encodeURIComponent(payload)}`);
	}
	if (!/^[A-Za-z0-9+/=\s]*$/.test(payload)) return undefined;
	const url = `data:${type[0].toLowerCase()};base64,${payload}`;
	return kind === "image" ? imageUrl(url) : url;
}
