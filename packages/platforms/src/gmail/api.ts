/** Gmail's SDK over Node's own fetch, with its retries off. */

import { auth, gmail, type gmail_v1 } from "@googleapis/gmail";
import type { Settings } from "@nexus-stream/adapter";
import { addressOf } from "@nexus-stream/adapter/platform/network";
import { harmless } from "@nexus-stream/adapter/platform/platform-error";
import { toPlatformError } from "./faults.ts";

export type GmailCredentials = Settings<"client_id" | "client_secret" | "refresh_token" | "api_url" | "token_url">;

export type Users = gmail_v1.Resource$Users;

/** One call, its failure in the words of all platforms. */
export type GmailCall = <T>(
	name: string,
	work: (users: Users, options: { signal?: AbortSignal }) => Promise<{ data: T }>,
	signal?: AbortSignal,
) => Promise<T>;

export function createApi(settings: GmailCredentials): GmailCall {
	const fetching = { fetchImplementation: fetch, retry: false };
	const client = new auth.OAuth2({
		clientId: settings.client_id,
		clientSecret: settings.client_secret,
		endpoints: { oauth2TokenUrl: addressOf("token_url", settings.token_url) },
		transporterOptions: fetching,
	});
	client.setCredentials({ refresh_token: settings.refresh_token });
	const rootUrl = addressOf("api_url", settings.api_url);
	const { users } = gmail({ version: "v1", auth: client, rootUrl, ...fetching });

	async function signIn(): Promise<void> {
		try {
			await client.getAccessToken();
		} catch (cause) {
			throw toPlatformError("sign-in", cause);
		}
	}

	return async (name, work, signal) => {
		// A token is asked for before the call that matters.
		await harmless(signIn());
		try {
			return (await work(users, { signal })).data;
		} catch (cause) {
			throw toPlatformError(name, cause);
		}
	};
}
