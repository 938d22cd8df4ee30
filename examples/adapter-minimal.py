#!/usr/bin/env python3
"""The smallest adapter that streams: it speaks only the five basic statuses and gets one answer at a time. Writes to NEXUS_TERMINAL_FILE or the terminal."""

import json
import os
import sys

TEXT_MAX = 10000

INFO = {
    "channel": "terminal-minimal",
    "version": "1.0.0",
    "protocol": 1,
    "supports": ["stream", "health"],
    "limits": {"textMax": TEXT_MAX, "unit": "codepoint"},
    "settings": [],
}


def emit(line):
    print(json.dumps(line), flush=True)


def stream(out):
    text, message, messages = "", 0, []
    for raw in sys.stdin.buffer:
        try:
            line = json.loads(raw)
            kind = line["type"]
        except (ValueError, KeyError, TypeError):
            print("skipped a line that is not a JSON object with a type", file=sys.stderr, flush=True)
            continue
        if kind == "stream_start":
            text, messages = "", []
        elif kind == "token":
            text += line["text"]
        elif kind in ("stream_end", "stream_error"):
            final = kind == "stream_error" or line.get("final", True)
            while text.strip():
                message += 1
                out.write(text[:TEXT_MAX] + "\n")
                out.flush()
                text = text[TEXT_MAX:]
                messages.append(str(message))
                emit({"type": "message_sent", "messageId": str(message), "final": final and not text.strip()})
            text = ""
            if final:
                emit({"type": "delivery_complete", "messageIds": messages})


verb = sys.argv[1] if len(sys.argv) > 1 else ""
if verb == "info":
    emit(INFO)
elif verb == "health":
    emit({"ok": True, "detail": "nothing can be wrong with it"})
elif verb == "stream":
    with open(os.environ.get("NEXUS_TERMINAL_FILE", "/dev/tty"), "a", encoding="utf-8", errors="surrogatepass") as terminal:
        stream(terminal)
else:
    print("usage: adapter-minimal.py info | stream | health", file=sys.stderr)
    sys.exit(2)
