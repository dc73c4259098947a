"""Serve the built book on this machine, at a port: `python -m tfbook.site.serve 8000`."""

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"


class Handler(SimpleHTTPRequestHandler):
    """Static files, and 404.html for what is not there, as GitHub Pages does it."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The book's page for a missing page; for other errors the usual line."""
        page = Path(self.directory) / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Quiet(Handler):
    def log_message(self, *args: object) -> None:
        """Say nothing of each request."""


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A tab that was closed in mid-download is no fault."""


@contextmanager
def serving(folder: Path = HTML) -> Iterator[str]:
    """The address of a quiet local server of a built book, inside the block."""
    with _QuietServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def main() -> None:
    """Serve until Ctrl+C."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    handler = functools.partial(Handler, directory=str(HTML))
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{port}/   (Ctrl+C stops)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
