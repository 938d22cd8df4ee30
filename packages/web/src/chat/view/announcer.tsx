/** Tells a screen reader what changed: an answer began, ended or was cut, the connection went or came back. */

import { useEffect, useRef, useState } from "preact/hooks";
import { announcement, connectionOf } from "../../app/words.ts";
import type { ChatState, TurnItem } from "../chat.ts";

export function Announcer({ chat }: { chat: ChatState }) {
	const before = useRef<{ session: string; turn: TurnItem | undefined; link: string; ready: boolean }>({
		session: "",
		turn: undefined,
		link: "",
		ready: false,
	});
	const [text, setText] = useState("");
	const turn = chat.turns.at(-1);
	const link = connectionOf(chat).state;
	useEffect(() => {
		const last = before.current;
		before.current = { session: chat.session, turn, link, ready: chat.phase === "ready" };
		// What was there when the session was opened is read by whoever wants to, not announced.
		if (last.session !== chat.session || !last.ready) return;
		if (turn && turn !== last.turn) {
			const said = announcement(last.turn, turn);
			if (said) return setText(said);
		}
		if (link === "reconnecting" && last.link === "live") setText("Connection lost. Reconnecting.");
		if (link === "live" && last.link === "reconnecting") setText("Connected again.");
	}, [chat.session, chat.phase, turn, link]);
	return (
		<div class="sr" role="status" aria-live="polite">
			{text || null}
		</div>
	);
}
