"""A server on the loopback that speaks OpenAI's embeddings API, with faults on demand."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def words_vector(text, dimensions=16):
    vector = [0.0] * dimensions
    for word in text.lower().split():
        vector[hashlib.sha256(word.encode()).digest()[0] % dimensions] += 1.0
    return vector


class Endpoint:
    """Embeds by counting hashed words; `faults` are answered first, one a request: (status, headers)."""

    def __init__(self, faults=(), dimensions=16):
        self.faults = list(faults)
        self.dimensions = dimensions
        self.requests = []
        self.authorizations = []
        self.spoil = lambda data: data
        """What is done to the rows of an answer before they are sent."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.authorizations.append(self.headers.get("Authorization"))
                if endpoint.faults:
                    status, headers = endpoint.faults.pop(0)
                    return self.answer(status, {"error": f"no: {self.headers.get('Authorization')}"}, headers)
                endpoint.requests.append(body)
                data = [
                    {"index": at, "embedding": words_vector(text, endpoint.dimensions)}
                    for at, text in enumerate(body["input"])
                ]
                self.answer(200, {"data": endpoint.spoil(data[::-1])}, {})
                return None

            def answer(self, status, payload, headers):
                encoded = json.dumps(payload).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(encoded)))
                self.end_headers()
                self.wfile.write(encoded)

            def log_message(self, *arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
