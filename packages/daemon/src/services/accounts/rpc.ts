/** Accounts and sign-ins. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	AccountKind,
	AccountSessionSchema,
	AccountSessionState,
	ListAccountsResponseSchema,
	type RuntimeAccountService,
	SubscribeAccountSessionEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/account_pb";
import { feedStream, principalOf } from "../../edge/rpc/rpc.ts";
import { requireOwner } from "../kit/principal.ts";
import type { AccountSession, AccountSessions } from "./port.ts";

export const accountMethods = ({
	accounts,
}: {
	accounts: Pick<AccountSessions, "list" | "subscribe">;
}): Partial<ServiceImpl<typeof RuntimeAccountService>> => ({
	async listAccounts(_, context) {
		requireOwner(principalOf(context));
		return create(ListAccountsResponseSchema, { accounts: accounts.list().map(sessionOf) });
	},
	async *subscribeAccountSessionEvents(_, context) {
		requireOwner(principalOf(context));
		yield* feedStream(context, {
			current: () => accounts.list(),
			subscribe: (listener) => accounts.subscribe(listener),
			key: ({ id }) => id,
			message: (session, sequence) =>
				create(SubscribeAccountSessionEventsResponseSchema, { sequence, account: sessionOf(session) }),
		});
	},
});

const STATES: Readonly<Record<AccountSession["state"], AccountSessionState>> = {
	connecting: AccountSessionState.CONNECTING,
	connected: AccountSessionState.CONNECTED,
	degraded: AccountSessionState.DEGRADED,
	disconnected: AccountSessionState.DISCONNECTED,
	expired: AccountSessionState.EXPIRED,
	removed: AccountSessionState.REMOVED,
};

const sessionOf = ({ id, kind, state, reason = "", changedAt, createdAt, expiresAt }: AccountSession) =>
	create(AccountSessionSchema, {
		accountId: id,
		kind: kind === "platform" ? AccountKind.PLATFORM : AccountKind.SIGN_IN,
		state: STATES[state],
		reason,
		changedAt: timestampFromMs(changedAt),
		createdAt: timestampFromMs(createdAt),
		expiresAt: expiresAt === undefined ? undefined : timestampFromMs(expiresAt),
	});
