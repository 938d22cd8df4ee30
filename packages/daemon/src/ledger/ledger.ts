/** The Ledger: settled truth. The door of this folder. */
export * from "./approvals/port.ts";
export * from "./checkpoints/port.ts";
export * from "./deliveries/port.ts";
export * from "./execution/port.ts";
export * from "./grants/port.ts";
export * from "./inbox/port.ts";
export * from "./notes/port.ts";
export * from "./pairings/port.ts";
export * from "./phases/port.ts";
export * from "./port.ts";
export * from "./sessions/port.ts";
export { sqliteLedger } from "./sqlite.ts";
export * from "./trust/port.ts";
export * from "./turns/port.ts";
