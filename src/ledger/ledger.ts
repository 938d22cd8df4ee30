/** The Ledger: settled truth. The door of this folder. */
export * from "./deliveries.ts";
export * from "./failure.ts";
export * from "./pairings.ts";
export * from "./port.ts";
export { sqliteLedger } from "./sqlite.ts";
