/** The limits of the edge, and their defaults. */

export interface EdgeLimits {
	/** A larger request body is refused with 413, unread. */
	bodyBytesMax: number;
	/** A JSON body with more values, or one that is nested deeper, is refused unparsed. */
	bodyValuesMax: number;
	bodyDepthMax: number;
	/** A larger webhook request is refused with 413; in base64 it has to fit one line to the adapter. */
	webhookBodyBytesMax: number;
	/** Webhook requests that wait for their adapters, all together and for one account; further ones are refused at once. */
	webhookRequestsMax: number;
	webhookRequestsPerAccountMax: number;
	/** Waiting requests to one account from one address: anybody can send them, and the account keeps room for others. */
	webhookRequestsPerClientMax: number;
	/** Bytes of their bodies, counted as they arrive. */
	webhookBytesMax: number;
	webhookBytesPerAccountMax: number;
	webhookBytesPerClientMax: number;
	/** The body of a webhook request must have arrived whole within this time. */
	webhookBodyTimeoutMs: number;
	/** Larger request headers are refused with 431. */
	headersBytesMax: number;
	connectionsMax: number;
	/** Connections from one address; over a trusted proxy: requests and streams of one client at a time. */
	connectionsPerClientMax: number;
	/** SSE readers, WebSockets and streams of remote procedures together. */
	streamsMax: number;
	/** Streams of one application. */
	streamsPerAppMax: number;
	/** Streams of all callers without a token: they watch the daemon's health. */
	streamsTokenlessMax: number;
	/** Requests without a token that are open, on both ports together and from one client; one more cuts the oldest. */
	tokenlessRequestsMax: number;
	tokenlessRequestsPerClientMax: number;
	/** A request without a token has a body of this size at most, which must have arrived whole within this time. */
	tokenlessBodyBytesMax: number;
	tokenlessBodyTimeoutMs: number;
	/** Headers of a call without a token on the gRPC port, uncompressed. */
	tokenlessHeadersBytesMax: number;
	/** Calls without a token from one client to the gRPC port; their resets count again. A client with more is refused for a while. */
	tokenlessCallsPerSecondMax: number;
	tokenlessRefusedMs: number;
	/** Connections of a port that are read before they sent a token, of all and of one client; further ones wait. */
	tokenlessConnectionsMax: number;
	tokenlessConnectionsPerClientMax: number;
	/** Wrong tokens from one client within a minute; the answers to further ones are held back for a while. */
	tokenFailuresPerMinuteMax: number;
	tokenFailureDelayMs: number;
	/** A larger message of a remote call is refused with RESOURCE_EXHAUSTED. */
	grpcReadBytesMax: number;
	/** A larger message is not sent. */
	grpcWriteBytesMax: number;
	/** Calls that one connection of the gRPC port may have open. */
	grpcStreamsPerConnectionMax: number;
	/** A connection whose client resets more streams than this, for long, is closed. */
	grpcResetsPerSecondMax: number;
	/** A request's headers must have arrived within this time. */
	headersTimeoutMs: number;
	/** A request must have arrived whole within this time. */
	requestTimeoutMs: number;
	/** An idle connection is kept this long for its next request. */
	keepAliveMs: number;
	/** An idle SSE reader gets a comment, a WebSocket a ping, this often. */
	heartbeatMs: number;
	/** A reader that takes nothing for this long while data waits is disconnected; it can resume. */
	stalledReaderMs: number;
	/** The longest that further pieces of a text are held back for a reader while the event loop is busy; 0 = not at all. */
	flushMsMax: number;
	wsMessageBytesMax: number;
	wsSubscriptionsMax: number;
	/** A WebSocket with more than this waiting to be sent stops pulling. */
	wsBufferedBytesMax: number;
	/** How long a sign-in code can be redeemed. */
	signInCodeMs: number;
	/** Sign-in codes that wait to be redeemed; the oldest goes first. */
	signInCodesMax: number;
	/** Failed sign-ins from one address within a minute. */
	signInFailuresPerMinuteMax: number;
	/** How long the cookie of a sign-in is good for. */
	signedInMs: number;
	/** Rows that a list answers with at most. */
	listItemsMax: number;
	/** Frames that one NDJSON answer holds at most. */
	framesMax: number;
}

export const EDGE_LIMITS: EdgeLimits = {
	bodyBytesMax: 4 * 1024 * 1024,
	bodyValuesMax: 20_000,
	bodyDepthMax: 64,
	// The largest that platforms send: Meta's are up to 3 MB.
	webhookBodyBytesMax: 3_000_000,
	webhookRequestsMax: 256,
	webhookRequestsPerAccountMax: 64,
	webhookRequestsPerClientMax: 32,
	webhookBytesMax: 48_000_000,
	webhookBytesPerAccountMax: 24_000_000,
	webhookBytesPerClientMax: 12_000_000,
	webhookBodyTimeoutMs: 5000,
	headersBytesMax: 16 * 1024,
	connectionsMax: 16_384,
	connectionsPerClientMax: 4096,
	streamsMax: 8192,
	streamsPerAppMax: 2048,
	streamsTokenlessMax: 256,
	tokenlessRequestsMax: 256,
	tokenlessRequestsPerClientMax: 64,
	tokenlessBodyBytesMax: 4096,
	tokenlessBodyTimeoutMs: 5000,
	tokenlessHeadersBytesMax: 4096,
	tokenlessCallsPerSecondMax: 100,
	tokenlessRefusedMs: 500,
	tokenlessConnectionsMax: 256,
	tokenlessConnectionsPerClientMax: 64,
	tokenFailuresPerMinuteMax: 60,
	tokenFailureDelayMs: 1000,
	grpcReadBytesMax: 4 * 1024 * 1024,
	grpcWriteBytesMax: 1024 * 1024,
	grpcStreamsPerConnectionMax: 1024,
	grpcResetsPerSecondMax: 100,
	headersTimeoutMs: 10_000,
	requestTimeoutMs: 30_000,
	keepAliveMs: 5000,
	heartbeatMs: 15_000,
	stalledReaderMs: 5 * 60_000,
	flushMsMax: 20,
	wsMessageBytesMax: 64 * 1024,
	wsSubscriptionsMax: 64,
	wsBufferedBytesMax: 256 * 1024,
	signInCodeMs: 10 * 60_000,
	signInCodesMax: 64,
	signInFailuresPerMinuteMax: 10,
	signedInMs: 30 * 24 * 60 * 60_000,
	listItemsMax: 200,
	framesMax: 1_000_000,
};
