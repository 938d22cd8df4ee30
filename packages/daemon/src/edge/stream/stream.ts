/** Streams: the logs of the Bus over HTTP and WebSocket, by one pump. The door of this folder; a further dialect is a file like `sse.ts` and a line here. */

export type { StreamFormat } from "./dialect.ts";
export { EncodedCache } from "./encoding.ts";
export { Flusher } from "./flusher.ts";
export { createReaders, type Readers, type StreamResponse } from "./http.ts";
export { NDJSON } from "./ndjson.ts";
export { Pump, type Transport } from "./pump.ts";
export { createSources, framesMissing, resumeAfter, type Sources } from "./source.ts";
export { SSE } from "./sse.ts";
export { upTo } from "./up-to.ts";
export { createSockets } from "./websocket.ts";
