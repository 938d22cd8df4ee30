/** Streams: the logs of the Bus over HTTP and WebSocket, by one pump. The door of this folder; a further format is a value like `SSE` in `formats.ts`. */

export { EncodedCache } from "./encoding.ts";
export { Flusher } from "./flusher.ts";
export { NDJSON, SSE, type StreamFormat } from "./formats.ts";
export { createReaders, type Readers, type StreamResponse } from "./http.ts";
export { Pump, type Transport } from "./pump.ts";
export { createSources, framesMissing, resumeAfter, type Sources, upTo } from "./source.ts";
export { createSockets } from "./websocket.ts";
