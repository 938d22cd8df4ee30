/** The built page, read into memory once: only what is in its folder can be served, under a policy that runs no foreign code. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { contentTypeOf } from "../../std/content-type.ts";

/** Undefined when the page has no such file. */
export type Page = (request: Request) => Response | undefined;

const CSP = [
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"img-src 'self' data: blob:",
	"media-src 'self' data: blob:",
	"connect-src 'self'",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
].join("; ");

const HINT =
	"Nexus is running. The page is not built: run `npm run build:web` and start again. The API is described at /openapi.json\n";

interface PageFile {
	body: Uint8Array<ArrayBuffer>;
	headers: Record<string, string>;
	etag: string;
}

export function createPage(dir: string | undefined): Page {
	const files = dir === undefined ? hint() : load(dir);
	return (request) => {
		if (request.method !== "GET" && request.method !== "HEAD") return undefined;
		const { pathname } = new URL(request.url);
		const file = files.get(pathname === "/" ? "/index.html" : pathname);
		if (!file) return undefined;
		if (request.headers.get("if-none-match") === file.etag)
			return new Response(null, { status: 304, headers: file.headers });
		return new Response(file.body, { headers: file.headers });
	};
}

const hint = () => new Map([["/index.html", pageFile("/index.txt", new TextEncoder().encode(HINT))]]);

function load(dir: string): Map<string, PageFile> {
	const files = new Map<string, PageFile>();
	for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
		if (!entry.isFile()) continue;
		const file = join(entry.parentPath, entry.name);
		const path = `/${relative(dir, file).split(sep).join("/")}`;
		files.set(path, pageFile(path, new Uint8Array(readFileSync(file))));
	}
	return files.has("/index.html") ? files : new Map([...files, ...hint()]);
}

function pageFile(path: string, body: Uint8Array<ArrayBuffer>): PageFile {
	const type = contentTypeOf(path);
	const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
	return {
		body,
		etag,
		headers: {
			"Content-Type": type.startsWith("text/") ? `${type}; charset=utf-8` : type,
			// The build puts a digest into the names below /assets/.
			"Cache-Control": path.startsWith("/assets/") ? "public, max-age=31536000, immutable" : "no-cache",
			"Content-Security-Policy": CSP,
			ETag: etag,
		},
	};
}
