/** Shown while this browser is not signed in. */

import { useState } from "preact/hooks";
import type { WebApp } from "./app.ts";

export function SignIn({ error, app }: { error: string | undefined; app: WebApp }) {
	const [token, setToken] = useState("");
	const [busy, setBusy] = useState(false);
	const submit = async (event: Event) => {
		event.preventDefault();
		setBusy(true);
		await app.signIn(token.trim());
		setBusy(false);
	};
	return (
		<main class="sign-in">
			<img src="/icon.svg" alt="" width="44" height="44" />
			<h1>Sign in to Nexus</h1>
			<p>
				Run <code>nexus url</code> where the daemon runs and open the address it prints. Or paste the daemon’s token:
			</p>
			<form onSubmit={(event) => void submit(event)}>
				<label for="token">Token</label>
				<input
					id="token"
					type="password"
					autocomplete="current-password"
					value={token}
					onInput={(event) => setToken(event.currentTarget.value)}
				/>
				<button type="submit" class="primary" disabled={busy || token.trim() === ""}>
					{busy ? "Signing in…" : "Sign in"}
				</button>
			</form>
			{error !== undefined && (
				<p class="sign-in-error" role="alert">
					{error}
				</p>
			)}
		</main>
	);
}
