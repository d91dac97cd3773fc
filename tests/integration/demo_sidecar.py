"""A stand-in for `groundwatch run` in tests of the demo: takes OTLP/HTTP, scores by one honest rule, serves sums.

An answer is faithful (1) when each of its sentences stands in the retrieved passages, else 0. Run by path with the
config file as its argument.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

lock = threading.Lock()
traces: dict[bytes, dict[str, str]] = defaultdict(dict)
scores: dict[str, float] = {}


def take(request: ExportTraceServiceRequest) -> None:
    for rs in request.resource_spans:
        for ss in rs.scope_spans:
            for span in ss.spans:
                attributes = {a.key: a.value.string_value for a in span.attributes}
                if attributes.get("openinference.span.kind") == "RETRIEVER":
                    texts = [v for k, v in attributes.items() if k.endswith("document.content")]
                    traces[span.trace_id]["contexts"] = " ".join(texts)
                elif attributes.get("openinference.span.kind") == "CHAIN" and "output.value" in attributes:
                    traces[span.trace_id]["response"] = attributes["output.value"]
                trace = traces[span.trace_id]
                if len(trace) == 2:
                    sentences = re.split(r"(?<=[.!?])\s+", trace["response"])
                    scores[span.trace_id.hex()] = float(all(s in trace["contexts"] for s in sentences))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lock:
            take(ExportTraceServiceRequest.FromString(body))
        self.answer("")

    def do_GET(self) -> None:
        with lock:
            n, total = len(scores), sum(scores.values())
            worst = [trace_id for trace_id, score in scores.items() if score == 0]
        if self.path == "/api/v1/status":
            rows = [{"trace_id": trace_id, "metric": "faithfulness", "score": 0.0} for trace_id in worst]
            self.answer(json.dumps({"worst": rows}))
            return
        labels = 'metric="faithfulness",tier="fast"'
        sums = {"w": n, "w2": n, "wy": total, "w2y": total, "w2y2": total}
        lines = [f"groundwatch_local_sum_{part}_total{{{labels}}} {value}" for part, value in sums.items()]
        lines.append(f'groundwatch_local_weight_total{{{labels},outcome="scored"}} {n}')
        lines.append(f"groundwatch_interactions_found_total {n}")
        self.answer("\n".join(lines) + "\n")

    def answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    port = yaml.safe_load(Path(sys.argv[1]).read_text())["receivers"]["http"]["port"]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        stop.wait(60)
        server.shutdown()
