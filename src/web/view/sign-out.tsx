/** Signs this browser out. */

import { useState } from "preact/hooks";
import { toNexusError } from "../../protocol/protocol.ts";
import type { WebApp } from "../app.ts";
import { Icon } from "./icon.tsx";

export function SignOut({ app }: { app: WebApp }) {
	const [failure, setFailure] = useState<string>();
	const [busy, setBusy] = useState(false);
	const signOut = async () => {
		setBusy(true);
		try {
			await app.signOut();
		} catch (cause) {
			setFailure(toNexusError(cause).message);
			setBusy(false);
		}
	};
	return (
		<button
			type="button"
			class="quiet sign-out"
			disabled={busy}
			onClick={() => void signOut()}
			title={failure ?? "Sign this browser out"}
		>
			<Icon name={failure === undefined ? "leave" : "warn"} /> {failure === undefined ? "Sign out" : "Try again"}
		</button>
	);
}
