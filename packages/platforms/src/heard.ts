/** A person's message out of its parts. */

import type { InboundMessage } from "@nexus-stream/adapter";
import type { MessageWithFiles, RemoteFile } from "@nexus-stream/adapter/platform/network";

/** `words`: the parts of its text, a line or more each. Undefined: it has neither words nor files. */
export function heard<File extends RemoteFile>(
	words: readonly string[],
	files: readonly File[],
	message: Omit<InboundMessage, "text">,
): MessageWithFiles<File> | undefined {
	const text = words.filter((each) => each !== "").join("\n");
	return text.trim() === "" && files.length === 0 ? undefined : { files, message: { ...message, text } };
}
