/** The bundled platforms: their names, how each is started, and how each names a chat. The door of this package. */
export { bundledCommand, isBundled } from "./bundled.ts";
export { CHANNEL_BLOCKS, CHANNELS, type Channel } from "./channels.ts";
export { isSameChat } from "./chats.ts";
