#!/usr/bin/env python3
"""A complete Nexus adapter without dependencies: it writes answers to a terminal, or to the file that NEXUS_TERMINAL_FILE names.
Where there is no terminal (a service, a CI job), it writes to terminal.txt in the current folder.

    adapter.py info
    adapter.py stream  --account me --format jsonl     answers as they are written, many at once
    adapter.py send    --account me --format jsonl     finished messages
    adapter.py monitor --account me --format jsonl     lines of the file NEXUS_TERMINAL_INPUT become inbound messages
    adapter.py health  --account me

A message is a heading and the lines below it, each with the message's id in front, so that several answers can be written at once:

    == room 3f2a…
    3f2a…| Hello,
    3f2a…| here is the answer.

The protocol is described in docs/adapter-protocol.md. A terminal cannot change what it has shown, so a line is written when it is complete.
What was written can be read back from a file; that is how this adapter resumes after a crash without saying anything twice.
"""

import hashlib
import json
import os
import signal
import sys
import threading
import time

TEXT_MAX = 2000

INFO = {
    "channel": "terminal",
    "version": "1.0.0",
    "protocol": 1,
    "supports": ["monitor", "send", "stream", "health"],
    "fields": ["runId", "offset", "intent", "pieces"],
    "limits": {"textMax": TEXT_MAX, "unit": "codepoint"},
    "reconcile": "history",
    "settings": [{"name": "file", "secret": False, "required": False, "prompt": "File to write to (empty: the terminal, or terminal.txt where there is none)"}],
}

emit_lock = threading.Lock()


def emit(line):
    """One JSON object a line, at once: the daemon waits for some of them."""
    data = json.dumps(line, separators=(",", ":")).encode()
    with emit_lock:
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.buffer.flush()


def log(message, **facts):
    """Logs go to stderr; stdout is only for the protocol."""
    sys.stderr.write(json.dumps({"level": "warn", "msg": message, **facts}) + "\n")
    sys.stderr.flush()


def lines_of(stream):
    """The objects of a JSON-lines stream. Binary, so that only LF ends a line; garbage is reported and skipped."""
    for raw in stream:
        if not raw.strip():
            continue
        try:
            value = json.loads(raw)
            if not isinstance(value, dict):
                raise ValueError("not a JSON object")
        except ValueError as error:
            log("skipped a line of the input", reason=str(error), excerpt=raw[:120].decode("utf-8", "replace"))
            continue
        yield value


def units(text):
    """Source positions count UTF-16 units, as JavaScript does."""
    return len(text) + sum(ord(char) > 0xFFFF for char in text)


def whole(text):
    """Joins surrogate halves that came in two tokens."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def nonce_of(delivery, ordinal, position):
    """The same message has the same name in every process that tries to create it."""
    return hashlib.sha256(f"{delivery}@{position}/{ordinal}".encode()).hexdigest()[:20]


class Terminal:
    """The messages that a person sees. Everything is appended; a file can also be read back."""

    def __init__(self, path):
        self.path = path
        self.readable = os.path.exists(path) and os.path.isfile(path) or not os.path.exists(path)
        self.out = open(path, "ab", buffering=0)
        if self.readable:
            self.drop_torn_line()

    def drop_torn_line(self):
        """A process that died while writing may have left half a line."""
        with open(self.path, "rb") as file:
            data = file.read()
        if data and not data.endswith(b"\n"):
            self.out.truncate(data.rfind(b"\n") + 1)

    def write(self, rows):
        self.out.write("".join(row + "\n" for row in rows).encode("utf-8", "surrogatepass"))

    def create(self, to, message):
        self.write([f"== {to} {message}"])

    def shown(self, message):
        """How many lines of a message there are; None when there is no such message, or it cannot be known."""
        if not self.readable:
            return None
        count = None
        with open(self.path, "rb") as file:
            for raw in file:
                row = raw.decode("utf-8", "surrogatepass")
                if row.startswith("== ") and row.rstrip("\n").endswith(" " + message):
                    count = 0
                elif row.startswith(message + "|"):
                    count = (count or 0) + 1
        return count


class Delivery:
    """One answer to one chat: text comes in, lines go out, at most TEXT_MAX characters a message."""

    def __init__(self, terminal, line):
        self.terminal = terminal
        self.to = line["target"]["to"]
        self.names = {key: line[key] for key in ("delivery", "runId") if key in line}
        self.key = line.get("delivery", line.get("runId", ""))
        # Without a name for deliveries the daemon knows nothing of intents.
        self.intent = "delivery" in line
        self.error_text = line.get("options", {}).get("errorText", "")
        self.offset = line.get("offset")
        resume = line.get("resume", {})
        self.position = resume.get("position", 0)  # of the first character of self.text, in the source
        self.since = self.position  # everything before is in finished messages
        self.ordinal = resume.get("ordinal", 0)
        self.text = ""
        self.bounds = []  # lengths of self.text at which a message has to end
        self.closed = None  # "end" or "error"
        self.message = None  # id of the open message; the nonce is the id
        self.waiting = None  # nonce whose ack has not come
        self.rows = 0  # lines of the open message that are written
        self.ids = []
        self.over = False
        if "messageId" in resume:
            self.open(resume["messageId"], terminal.shown(resume["messageId"]) or 0)
        elif "uncertain" in resume:
            self.look_up(resume["uncertain"]["nonce"])

    def say(self, line):
        offset = {} if self.offset is None else {"offset": self.offset}
        emit({**line, **self.names, **offset})

    def look_up(self, nonce):
        """A crash left open whether this message was created."""
        rows = self.terminal.shown(nonce)
        if rows is not None:
            self.open(nonce, rows)
            self.say({"type": "message_created", "messageId": nonce, "nonce": nonce, "from": self.since})
        elif self.terminal.readable:
            self.create(nonce)
        else:
            self.fail("unknown_outcome", "A terminal cannot be read back: look whether the message is there.", nonce)

    def open(self, message, rows):
        self.message, self.rows = message, rows
        self.ids.append(message)

    def create(self, nonce):
        self.terminal.create(self.to, nonce)
        self.open(nonce, 0)
        self.say({"type": "message_created", "messageId": nonce, "nonce": nonce, "from": self.since})

    def take(self, line):
        self.offset = line.get("offset", self.offset)
        kind = line["type"]
        if kind == "token" and self.closed is None:
            self.text = whole(self.text + line["text"])
        elif kind == "stream_end" and line.get("final", True) is False:
            self.bounds.append(len(self.text))
        elif kind in ("stream_end", "stream_error"):
            self.closed = self.closed or ("end" if kind == "stream_end" else "error")
        elif kind == "ack" and line.get("nonce") == self.waiting:
            self.waiting = None
            self.create(line["nonce"])
        self.go_on()

    def go_on(self):
        """Does what can be done with the text that is here."""
        while not self.over and self.waiting is None:
            end = self.bounds[0] if self.bounds else len(self.text)
            ended = bool(self.bounds) or self.closed is not None
            segment = self.text[:end]
            if not segment.strip():
                if not ended:
                    return
                self.skip(end)
                if self.closed and not self.text:
                    self.close()
                    return
            elif self.message is None:
                self.announce()
            elif len(segment) > TEXT_MAX:
                self.finish(self.cut(segment))
            elif ended:
                self.finish(end)
            else:
                self.show(segment[: segment.rfind("\n") + 1].split("\n")[:-1], end)
                return

    def skip(self, length):
        """Text that shows nothing makes no message."""
        self.position += units(self.text[:length])
        self.text = self.text[length:]
        self.bounds = [bound - length for bound in self.bounds]
        if self.bounds and self.bounds[0] <= 0:
            self.bounds.pop(0)

    def announce(self):
        self.ordinal += 1
        nonce = nonce_of(self.key, self.ordinal, self.since)
        if not self.intent:
            self.create(nonce)
            return
        # The message is created when the ack says that the intent is on disk.
        self.waiting = nonce
        self.say({"type": "message_creating", "nonce": nonce, "from": self.since, "ordinal": self.ordinal})

    def cut(self, segment):
        """The last white space within the limit, or the limit."""
        for at in range(TEXT_MAX, 0, -1):
            if segment[at - 1].isspace():
                return at
        return TEXT_MAX

    def show(self, rows, upto):
        if len(rows) <= self.rows:
            return
        self.terminal.write(f"{self.message}| {row}" for row in rows[self.rows :])
        self.rows = len(rows)
        to = self.position + units(self.text[:upto])
        self.say({"type": "message_updated", "messageId": self.message, "chars": upto, "to": to})

    def finish(self, length):
        """The message has its complete text: the cursor moves, the next message begins behind it."""
        rows = self.text[:length].rstrip("\n").split("\n")
        self.terminal.write(f"{self.message}| {row}" for row in rows[self.rows :])
        message, start = self.message, self.since
        self.message, self.rows = None, 0
        self.skip(length)
        self.since = self.position
        last = self.closed is not None and not self.text.strip() and not (self.closed == "error" and self.error_text)
        status = {"type": "message_sent", "messageId": message, "final": last, "nonce": message}
        self.say({**status, "from": start, "to": self.since})

    def close(self):
        if self.closed == "error" and self.error_text:
            # Not part of the source: said after it, and positions stand still.
            text, self.error_text = self.error_text, ""
            self.closed, self.text, self.position = "end", text, self.position - units(text)
            self.go_on()
            return
        self.over = True
        self.say({"type": "delivery_complete", "messageIds": self.ids})

    def fail(self, code, error, nonce):
        self.over = True
        self.say({"type": "delivery_error", "error": error, "code": code, "nonce": nonce})


def stream(terminal):
    """Answers as they are written. Lines of many deliveries come mixed; unknown types are ignored."""
    deliveries = {}
    latest = ""
    for line in lines_of(sys.stdin.buffer):
        try:
            key = line.get("delivery", line.get("runId", latest))
            if line.get("type") == "stream_start":
                latest = key
                deliveries[key] = Delivery(terminal, line)
            elif key in deliveries:
                deliveries[key].take(line)
            if key in deliveries and deliveries[key].over:
                del deliveries[key]
        except (KeyError, TypeError) as error:
            log("skipped a line of the input", reason=repr(error))
    # The daemon has closed our input: what is open will be resumed by another process.


def after(count, text):
    """The text after the first `count` UTF-16 units."""
    return text.encode("utf-16-le", "surrogatepass")[2 * count :].decode("utf-16-le", "surrogatepass")


def pieces(text):
    while len(text) > TEXT_MAX:
        at = max(text.rfind(" ", 0, TEXT_MAX) + 1, text.rfind("\n", 0, TEXT_MAX) + 1) or TEXT_MAX
        yield text[:at]
        text = text[at:]
    yield text


def messages(line):
    """The remainder of a line: each message's nonce, its text, and what is said when it is out."""
    done = line.get("done", {"pieces": 0, "chars": 0})
    start = line.get("from", 0)
    end = line.get("to", start + units(line["text"]) - done["chars"])
    names = {key: line[key] for key in ("delivery", "runId") if key in line}
    parts = list(pieces(after(done["chars"], line["text"])))
    chars = done["chars"]
    for index, part in enumerate(parts):
        piece = done["pieces"] + index + 1
        nonce = line["nonce"] if piece == 1 else f"{line['nonce']}.{piece}"
        last = index == len(parts) - 1
        chars += units(part)
        to = end if last else min(end, start + units(part))
        sent = {"type": "message_sent", "messageId": nonce, "final": last, "nonce": nonce}
        yield nonce, part, {**sent, "from": start, "to": to, "chars": chars, **names}
        start = to


def send(terminal):
    """One message a line, or several. `find` asks how many of them exist."""
    for line in lines_of(sys.stdin.buffer):
        try:
            if line.get("type") == "find":
                answer = {"type": "found", "nonce": line["nonce"], "known": terminal.readable}
                for nonce, part, sent in messages(line):
                    there = terminal.shown(nonce) is not None
                    if not there or sent["final"]:
                        emit({**answer, "messageId": nonce} if there else answer)
                        break
                    emit(sent)
            elif line.get("type") == "send":
                for nonce, part, sent in messages(line):
                    rows = part.rstrip("\n").split("\n")
                    terminal.write([f"== {line['target']['to']} {nonce}", *(f"{nonce}| {row}" for row in rows)])
                    emit(sent)
        except (KeyError, TypeError) as error:
            log("skipped a line of the input", reason=repr(error))


def monitor(account):
    """Every line of NEXUS_TERMINAL_INPUT is a message of a person. It counts as read once the daemon has it safe."""
    state_file = os.environ.get("NEXUS_STATE_FILE")
    acks = set()
    heard = threading.Condition()
    ended = threading.Event()

    def listen():
        for line in lines_of(sys.stdin.buffer):
            if line.get("type") == "ack":
                with heard:
                    acks.add(line.get("eventId"))
                    heard.notify_all()
        ended.set()
        with heard:
            heard.notify_all()

    threading.Thread(target=listen, daemon=True).start()
    path = os.environ.get("NEXUS_TERMINAL_INPUT")
    position = 0
    if state_file and os.path.exists(state_file):
        with open(state_file, encoding="utf-8") as file:
            position = json.load(file).get("position", 0)
    while not ended.wait(0.1):
        if not path or not os.path.exists(path):
            continue
        with open(path, "rb") as file:
            file.seek(position)
            raw = file.readline()
        if not raw.endswith(b"\n"):
            continue
        event = f"{position}"
        person = os.environ.get("USER", "me")
        chat = {"id": account, "type": "direct"}
        message = {"type": "message", "eventId": event, "from": {"id": person}, "chat": chat, "target": {"to": account}}
        emit({**message, "text": raw.decode("utf-8", "replace").rstrip("\n"), "ts": int(time.time() * 1000)})
        with heard:
            heard.wait_for(lambda: event in acks or ended.is_set())
            if event not in acks:
                return
            acks.discard(event)
        position += len(raw)
        if state_file:
            with open(state_file + ".tmp", "w", encoding="utf-8") as file:
                json.dump({"position": position}, file)
            os.replace(state_file + ".tmp", state_file)


def default_path():
    """Without a terminal of our own, /dev/tty is there and cannot be opened."""
    try:
        open("/dev/tty", "ab", buffering=0).close()
        return "/dev/tty"
    except OSError:
        return os.path.abspath("terminal.txt")


def main(argv):
    verb = argv[0] if argv else ""
    if verb == "info":
        emit(INFO)
        return 0
    if verb not in ("stream", "send", "monitor", "health") or "--account" not in argv[:-1]:
        sys.stderr.write("usage: adapter.py info | monitor | send | stream | health  --account <id> [--format jsonl]\n")
        return 2
    account = argv[argv.index("--account") + 1]
    settings = {}
    if "NEXUS_ACCOUNT_FILE" in os.environ:
        with open(os.environ["NEXUS_ACCOUNT_FILE"], encoding="utf-8") as file:
            settings = json.load(file)["settings"]
    path = settings.get("file") or os.environ.get("NEXUS_TERMINAL_FILE") or default_path()
    try:
        terminal = Terminal(path)
    except OSError as error:
        if verb == "health":
            emit({"ok": False, "detail": f"{path} cannot be written: {error.strerror}. Set NEXUS_TERMINAL_FILE."})
        else:
            log("cannot write", path=path, reason=str(error))
        return 1
    if verb == "health":
        emit({"ok": True, "detail": f"writes to {path}"})
    elif verb == "monitor":
        monitor(account)
    else:
        {"stream": stream, "send": send}[verb](terminal)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not sys.stdin.isatty():
        # Ctrl-C at the daemon's terminal reaches us too; the daemon says when it is over.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sys.exit(main(sys.argv[1:]))
    except (BrokenPipeError, KeyboardInterrupt):
        # There is no reader any more; another process will resume what is open.
        os._exit(0)
