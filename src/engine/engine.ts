/** Agents behind one small port, and how the configured one is found. The door of this folder. */
export { demoEngine } from "./demo/demo.ts";
export { chooseEngine, loadEngine } from "./load.ts";
export { detectProvider, keyVariable } from "./pi/detect.ts";
export * from "./port.ts";
