/** Gmail's SDK over Node's own fetch, with its retries off. */

import { auth, gmail, type gmail_v1 } from "@googleapis/gmail";
import { harmless } from "@nexus-stream/adapter/platform/platform-error";
import { toPlatformError } from "./faults.ts";

export const DEFAULT_API_URL = "https://gmail.googleapis.com";
export const DEFAULT_TOKEN_URL = "https://oauth2.googleapis.com/token";

export interface Credentials {
	clientId: string;
	clientSecret: string;
	refreshToken: string;
	apiUrl: string;
	tokenUrl: string;
}

export type Users = gmail_v1.Resource$Users;

/** One call, its failure in the words of all platforms. */
export type GmailCall = <T>(
	name: string,
	work: (users: Users, options: { signal?: AbortSignal }) => Promise<{ data: T }>,
	signal?: AbortSignal,
) => Promise<T>;

export function createApi({ clientId, clientSecret, refreshToken, apiUrl, tokenUrl }: Credentials): GmailCall {
	const fetching = { fetchImplementation: fetch, retry: false };
	const client = new auth.OAuth2({
		clientId,
		clientSecret,
		endpoints: { oauth2TokenUrl: tokenUrl },
		transporterOptions: fetching,
	});
	client.setCredentials({ refresh_token: refreshToken });
	const { users } = gmail({ version: "v1", auth: client, rootUrl: apiUrl, ...fetching });

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
			return (await work(users, signal ? { signal } : {})).data;
		} catch (cause) {
			throw toPlatformError(name, cause);
		}
	};
}
