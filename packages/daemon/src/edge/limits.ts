/** The limits of the edge, with their defaults. */

export const EDGE_LIMITS = {
	/** A larger request body is refused with 413, unread. */
	bodyBytesMax: 4 * 1024 * 1024,
	/** A JSON body with more values, or one that is nested deeper, is refused unparsed. */
	bodyValuesMax: 20_000,
	bodyDepthMax: 64,
	/** A larger webhook request is refused with 413; in base64 it has to fit one line to the adapter. Meta sends the largest, up to 3 MB. */
	webhookBodyBytesMax: 3_000_000,
	/** Webhook requests that wait for their adapters, all together and for one account; further ones are refused at once. */
	webhookRequestsMax: 256,
	webhookRequestsPerAccountMax: 64,
	/** Waiting requests to one account from one address: anybody can send them, and the account keeps room for others. */
	webhookRequestsPerClientMax: 32,
	/** Bytes of their bodies, counted as they arrive. */
	webhookBytesMax: 48_000_000,
	webhookBytesPerAccountMax: 24_000_000,
	webhookBytesPerClientMax: 12_000_000,
	/** The body of a webhook request must have arrived whole within this time. */
	webhookBodyTimeoutMs: 5000,
	/** Larger request headers are refused with 431. */
	headersBytesMax: 16 * 1024,
	connectionsMax: 16_384,
	/** Connections from one address; over a trusted proxy: requests and streams of one client at a time. */
	connectionsPerClientMax: 4096,
	/** SSE readers, WebSockets and streams of remote procedures together. */
	streamsMax: 8192,
	/** Streams of one application. */
	streamsPerAppMax: 2048,
	/** Streams of all callers without a token: they watch the daemon's health. */
	streamsTokenlessMax: 256,
	/** Requests without a token that are open, on both ports together and from one client; one more cuts the oldest. */
	tokenlessRequestsMax: 256,
	tokenlessRequestsPerClientMax: 64,
	/** A request without a token has a body of this size at most, which must have arrived whole within this time. */
	tokenlessBodyBytesMax: 4096,
	tokenlessBodyTimeoutMs: 5000,
	/** Headers of a call without a token on the gRPC port, uncompressed. */
	tokenlessHeadersBytesMax: 4096,
	/** Calls without a token from one client to the gRPC port; their resets count again. A client with more is refused for a while. */
	tokenlessCallsPerSecondMax: 100,
	tokenlessRefusedMs: 500,
	/** Connections of a port that are read before they sent a token, of all and of one client; further ones wait. */
	tokenlessConnectionsMax: 256,
	tokenlessConnectionsPerClientMax: 64,
	/** Wrong tokens from one client within a minute; the answers to further ones are held back for a while. */
	tokenFailuresPerMinuteMax: 60,
	tokenFailureDelayMs: 1000,
	/** A larger message of a remote call is refused with RESOURCE_EXHAUSTED. */
	grpcReadBytesMax: 4 * 1024 * 1024,
	/** A larger message is not sent. */
	grpcWriteBytesMax: 1024 * 1024,
	/** Calls that one connection of the gRPC port may have open. */
	grpcStreamsPerConnectionMax: 1024,
	/** A connection whose client resets more streams than this, for long, is closed. */
	grpcResetsPerSecondMax: 100,
	/** A request's headers must have arrived within this time. */
	headersTimeoutMs: 10_000,
	/** A request must have arrived whole within this time. */
	requestTimeoutMs: 30_000,
	/** An idle connection is kept this long for its next request. */
	keepAliveMs: 5000,
	/** An idle SSE reader gets a comment, a WebSocket a ping, this often. */
	heartbeatMs: 15_000,
	/** A reader that takes nothing for this long while data waits is disconnected; it can resume. */
	stalledReaderMs: 5 * 60_000,
	/** The longest that further pieces of a text are held back for a reader while the event loop is busy; 0 = not at all. */
	flushMsMax: 20,
	wsMessageBytesMax: 64 * 1024,
	wsSubscriptionsMax: 64,
	/** A WebSocket with more than this waiting to be sent stops pulling. */
	wsBufferedBytesMax: 256 * 1024,
	/** How long a sign-in code can be redeemed. */
	signInCodeMs: 10 * 60_000,
	/** Sign-in codes that wait to be redeemed; the oldest goes first. */
	signInCodesMax: 64,
	/** Failed sign-ins from one address within a minute. */
	signInFailuresPerMinuteMax: 10,
	/** How long the cookie of a sign-in is good for. */
	signedInMs: 30 * 24 * 60 * 60_000,
	/** Rows that a list answers with at most. */
	listItemsMax: 200,
	/** Frames that one NDJSON answer holds at most. */
	framesMax: 1_000_000,
};

export type EdgeLimits = Record<keyof typeof EDGE_LIMITS, number>;
