/** Accounts and sign-ins. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	AccountKind,
	type AccountSessionSchema,
	AccountSessionState,
	type RuntimeAccountService,
} from "@nexus-stream/client/gen/nexus/runtime/v1/account_pb";
import { feedStream, principalOf } from "../../edge/rpc/rpc.ts";
import { inCapitals, timeOf } from "../kit/codec.ts";
import { requireOwner } from "../kit/principal.ts";
import type { AccountSession, AccountSessions } from "./accounts.ts";

export const accountMethods = ({
	accounts,
}: {
	accounts: Pick<AccountSessions, "list" | "subscribe">;
}): Partial<ServiceImpl<typeof RuntimeAccountService>> => ({
	async listAccounts(_, context) {
		requireOwner(principalOf(context));
		return { accounts: accounts.list().map(sessionOf) };
	},
	async *subscribeAccountSessionEvents(_, context) {
		requireOwner(principalOf(context));
		yield* feedStream(context, {
			current: () => accounts.list(),
			subscribe: (listener) => accounts.subscribe(listener),
			key: ({ id }) => id,
			message: (session, sequence) => ({ sequence, account: sessionOf(session) }),
		});
	},
});

const sessionOf = (session: AccountSession): MessageInitShape<typeof AccountSessionSchema> => ({
	accountId: session.id,
	kind: session.kind === "platform" ? AccountKind.PLATFORM : AccountKind.SIGN_IN,
	state: AccountSessionState[inCapitals(session.state)],
	reason: session.reason,
	changedAt: timestampFromMs(session.changedAt),
	createdAt: timestampFromMs(session.createdAt),
	expiresAt: timeOf(session.expiresAt),
});
