/** Signs this browser out. */

import { toNexusError } from "@nexus-stream/protocol";
import { useState } from "preact/hooks";
import { Icon } from "../ui/icon.tsx";
import type { WebApp } from "./app.ts";

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
