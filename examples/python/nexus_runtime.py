"""Reads the Nexus runtime contract with plain grpcio: no generated code, only a descriptor set.

    pip install grpcio protobuf
    npx buf build -o runtime.binpb          # or dist/runtime.binpb of the package
    export NEXUS_GRPC=127.0.0.1:7778 NEXUS_TOKEN=... NEXUS_DESCRIPTORS=runtime.binpb
    python3 nexus_runtime.py text "Tell me a story"
    python3 nexus_runtime.py job "Tell me a story"
    python3 nexus_runtime.py accounts

Every line that it prints is JSON. A stream is read by its close mode:

    A  the last event has done = true; a cut run is read again by its id and never executed again
    B  ends after the event in a terminal state; newer snapshots replace older ones
    C  ends after the chunk with eof = true
    D  a subscription: it is rebuilt, and never ends by itself
"""

import json
import os
import random
import sys
import time
import uuid

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

PACKAGE = "nexus.runtime.v1."
MODES = {
    "RuntimeAiService/StreamScenario": "A",
    "RuntimeAiService/SubscribeScenarioJobEvents": "B",
    "RuntimeWorkflowService/SubscribeWorkflowEvents": "B",
    "RuntimeAuditService/ExportAuditEvents": "C",
    "RuntimeAuditService/SubscribeRuntimeHealthEvents": "D",
    "RuntimeAuditService/SubscribeAIProviderHealthEvents": "D",
    "RuntimeAccountService/SubscribeAccountSessionEvents": "D",
    "RuntimeMemoryService/SubscribeMemoryEvents": "D",
    "RuntimeAgentService/SubscribeAgentEvents": "D",
    "RuntimeAppService/SubscribeAppMessages": "D",
    "RuntimeRealtimeService/ReadRealtimeEvents": "D",
    "RuntimeLocalService/WatchLocalTransfers": "D",
    "grpc.health.v1.Health/Watch": "D",
}
TERMINAL = {"COMPLETED", "FAILED", "CANCELED", "TIMEOUT", "SKIPPED"}
# Cuts of the transport, never outcomes: the same stream is asked for again, after the last sequence.
CUTS = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}
# Reasons for which the same call may succeed later; "" is the network's.
PASSING = {"", "REASON_CODE_UNAVAILABLE", "REASON_CODE_STOPPING", "REASON_CODE_STALLED", "REASON_CODE_BUSY"}
RETRY_FIRST_S, RETRY_MAX_S, TRIES_MAX = 0.1, 1.0, 120


class Runtime:
    """Calls any method by its name, with and as dictionaries."""

    def __init__(self, target, token, descriptors, on_event=lambda event: None):
        self.pool = descriptor_pool.DescriptorPool()
        with open(descriptors, "rb") as file:
            for proto in descriptor_pb2.FileDescriptorSet.FromString(file.read()).file:
                self.pool.Add(proto)
        self.on_event = on_event
        self.metadata = [("authorization", f"Bearer {token}")]
        options = [
            # Soon after a restart of the daemon, not after gRPC's own two minutes.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 500),
            # `read` decides what to ask again. Besides, gRPC's own retry may hang after a GOAWAY (seen with 1.51).
            ("grpc.enable_retries", 0),
        ]
        self.channel = grpc.insecure_channel(target, options=options)

    def close(self):
        self.channel.close()

    def _message(self, descriptor):
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        return message_factory.MessageFactory(self.pool).GetPrototype(descriptor)

    def _method(self, method):
        service, _, rpc = _full(method).partition("/")
        return self.pool.FindServiceByName(service).methods_by_name[rpc]

    def _call(self, method, kind, fields):
        found = self._method(method)
        request = json_format.ParseDict(fields, self._message(found.input_type)())
        answer = self._message(found.output_type)
        make = getattr(self.channel, kind)
        call = make(
            "/" + _full(method),
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return call(request, metadata=self.metadata)

    def unary(self, method, **fields):
        return _dict(self._call(method, "unary_unary", fields))

    def read(self, method, **fields):
        """Every new event once and in order, across cuts. Ends as the stream's close mode says; raises what the daemon refused with."""
        mode, asked, last, tries, down = MODES[method], dict(fields), None, 0, False
        # A state feed has no positions: it begins with what is so now.
        is_log = "after" in self._method(method).input_type.fields_by_name
        if mode == "A" and "run_id" not in asked:
            # A caller that is cut before the first packet knows no run: the same key finds it.
            asked.setdefault("idempotency_key", str(uuid.uuid4()))
        while True:
            stream = self._call(method, "unary_stream", asked)
            try:
                if mode == "D" and is_log and "after" not in asked:
                    # Where "from now on" is, for a reader that is cut before its first event.
                    begins = dict(stream.initial_metadata() or ()).get("x-nexus-after")
                    asked = asked if begins is None else {**asked, "after": int(begins)}
                for message in stream:
                    event, tries = _dict(message), 0
                    if down:
                        down = False
                        self.on_event({"type": "runtime.reconnected", "procedure": method})
                    sequence = _place(mode, event) if is_log else None
                    is_last = _is_last(mode, event)
                    if not is_last and last is not None and sequence is not None and sequence <= last:
                        continue
                    last = sequence
                    asked = _resumed(mode, asked, event, last)
                    if mode == "D" and is_log and "event_type" not in event:
                        # A place, and no event: what happened up to there was not asked for.
                        continue
                    yield event
                    if is_last:
                        return
                if mode == "D":
                    return
                code, details = grpc.StatusCode.UNKNOWN, "closed without its end"
            except grpc.RpcError as error:
                if error.code() not in CUTS or _reason(error) not in PASSING or tries >= TRIES_MAX:
                    raise
                code, details = error.code(), error.details()
            finally:
                stream.cancel()
            if not down:
                down = True
                self.on_event({"type": "runtime.disconnected", "procedure": method, "code": code.name, "message": details})
            time.sleep(min(RETRY_MAX_S, RETRY_FIRST_S * 2**tries) * random.uniform(0.5, 1))
            tries += 1


def _full(method):
    return method if method.startswith("grpc.") else PACKAGE + method


def _reason(error):
    return dict(error.trailing_metadata() or ()).get("x-nexus-reason-code", "")


def _dict(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def _place(mode, event):
    """64-bit numbers are text in JSON."""
    name = "last_audit_sequence" if mode == "C" else "sequence"
    return int(event[name]) if name in event else None


def _is_last(mode, event):
    if mode == "A":
        return event.get("done", False)
    if mode == "B":
        state = (event.get("job") or event.get("workflow") or {}).get("state", "")
        return state.rpartition("_STATE_")[2] in TERMINAL
    return mode == "C" and event.get("eof", False)


def _resumed(mode, asked, event, last):
    if mode == "A":
        return {"run_id": event["run_id"], "after": last}
    return {**asked, "after": last} if last is not None else asked


def scenario(prompt):
    head = {"app_id": os.environ.get("NEXUS_APP", "example"), "connector_id": os.environ.get("NEXUS_CONNECTOR", "default")}
    return {"head": head, "text_generate": {"messages": [{"role": "user", "text": prompt}]}}


def main(command, *words):
    def say(line):
        print(json.dumps(line), flush=True)

    target, token = os.environ["NEXUS_GRPC"], os.environ["NEXUS_TOKEN"]
    descriptors = os.environ.get("NEXUS_DESCRIPTORS", "runtime.binpb")
    runtime = Runtime(target, token, descriptors, on_event=say)
    prompt = " ".join(words) or "Hello"
    try:
        if command == "text":
            for event in runtime.read("RuntimeAiService/StreamScenario", scenario=scenario(prompt)):
                say(event)
        elif command == "job":
            job = runtime.unary("RuntimeAiService/SubmitScenarioJob", scenario=scenario(prompt), idempotency_key=str(uuid.uuid4()))["job"]
            snapshot = job
            for event in runtime.read("RuntimeAiService/SubscribeScenarioJobEvents", job_id=job["job_id"], after=0):
                say(event)
                # The newest one is all that counts; types repeat and have no order.
                snapshot = event["job"]
            say({"result": snapshot})
        elif command == "accounts":
            for event in runtime.read("RuntimeAccountService/SubscribeAccountSessionEvents"):
                say(event)
        elif command == "health":
            say(runtime.unary("grpc.health.v1.Health/Check"))
        else:
            sys.exit(f"unknown command {command}: text, job, accounts or health")
    except grpc.RpcError as error:
        say({"refused": error.code().name, "reason_code": _reason(error), "message": error.details()})
        sys.exit(1)
    finally:
        runtime.close()


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["text"]))
