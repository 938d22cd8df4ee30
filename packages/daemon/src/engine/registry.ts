/** Every engine that Nexus brings along. To add one: its folder with an `entry.ts`, and a line here. */

export { demo } from "./demo/entry.ts";
export { type PiConfig, pi } from "./pi/entry.ts";
export { piCodingAgent } from "./pi-coding-agent/entry.ts";
export { type ReasonActConfig, reasonAct } from "./reason-act/entry.ts";
