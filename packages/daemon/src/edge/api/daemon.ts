/** The daemon itself: signing in, its health, its metrics and its description. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { z } from "zod";
import type { Auth } from "../http/auth.ts";
import { principalOfCaller } from "../http/gate.ts";
import type { EdgeDeps, EdgeLimits } from "../port.ts";
import { component, get, type HandlersOf, named, post } from "./resource.ts";

const SignInRequest = component(
	"SignInRequest",
	z.union(
		[z.strictObject({ code: z.string().min(1).max(256) }), z.strictObject({ token: z.string().min(1).max(4096) })],
		"send {code} or {token}",
	),
);
const SignedIn = component("SignedIn", { signed_in: z.literal(true) });
const SignedOut = component("SignedOut", { signed_out: z.literal(true) });
const SignInCode = component("SignInCode", { code: z.string(), url: z.string() });
const Health = component("Health", { status: z.literal("ok") });
const Readiness = component("Readiness", {
	ready: z.boolean(),
	state: named("DaemonState", z.enum(["STOPPED", "STARTING", "READY", "DEGRADED", "STOPPING"])),
	detail: z.string().exactOptional(),
});

const OPEN = { auth: false } as const;

export const DAEMON_ROUTES = {
	signIn: post("/v1/sign-in", "Exchanges a one-time code, or the token, for a cookie.", {
		...OPEN,
		body: SignInRequest,
		answer: SignedIn,
		errors: ["unauthenticated"],
	}),
	signOut: post("/v1/sign-out", "Signs the page out: its cookie is worth nothing any more, and its streams end.", {
		answer: SignedOut,
	}),
	createSignInCode: post("/v1/sign-in-codes", "A fresh one-time sign-in code and the address that carries it.", {
		status: 201,
		answer: SignInCode,
	}),
	openapi: get("/openapi.json", "This document.", { ...OPEN, answer: "application/json" }),
	healthz: get("/healthz", "The process lives.", { ...OPEN, answer: Health }),
	readyz: get("/readyz", "The daemon takes work: 200, or 503 with its state.", { ...OPEN, answer: Readiness }),
	metrics: get("/metrics", "Metrics in the Prometheus text format.", { answer: "text/plain" }),
};

export interface DaemonHandlerParts {
	deps: EdgeDeps;
	limits: EdgeLimits;
	auth: Auth;
	cookieName(): string;
	signIn(): { code: string; url: string };
	openapi(): Promise<object>;
}

export function daemonHandlers(parts: DaemonHandlerParts): HandlersOf<typeof DAEMON_ROUTES> {
	const { deps, limits, auth, cookieName, signIn } = parts;
	let document: object | undefined;
	return {
		async signIn({ body }, { caller, headers }) {
			const value = await auth.signIn(body, caller.address).catch((cause: unknown) => {
				const { code, message } = toNexusError(cause);
				// Not those that are refused for being too many: they would fill the log.
				if (code === "unauthenticated") deps.log.warn({ client: caller.address, error: message }, "a sign-in failed");
				throw cause;
			});
			const secure = caller.https || headers.get("origin")?.startsWith("https:") ? "; Secure" : "";
			const attributes = `Path=/; Max-Age=${Math.floor(limits.signedInMs / 1000)}; HttpOnly; SameSite=Strict${secure}`;
			return Response.json(
				{ signed_in: true },
				{ headers: { "Set-Cookie": `${cookieName()}=${value}; ${attributes}` } },
			);
		},
		async signOut(_, { caller }) {
			const { proof } = caller;
			if (proof?.signInId === undefined)
				throw new NexusError("invalid", "a page signs out by the cookie of its sign-in; a token is not signed in");
			await auth.signOut(proof.signInId, principalOfCaller(caller));
			const gone = `${cookieName()}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict`;
			return Response.json({ signed_out: true }, { headers: { "Set-Cookie": gone } });
		},
		createSignInCode: () => signIn(),
		async openapi() {
			// Built by the first request for it: it would take a tenth of the start.
			document ??= await parts.openapi();
			return document;
		},
		healthz: () => ({ status: "ok" }),
		readyz() {
			const readiness = deps.readiness();
			return Response.json(readiness, { status: readiness.ready ? 200 : 503 });
		},
		async metrics() {
			return new Response(await deps.metrics.render(), { headers: { "Content-Type": deps.metrics.contentType } });
		},
	};
}
