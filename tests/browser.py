"""What the tests in a real browser share: a server of files, and Chromium, of playwright or of the system."""

import contextlib
import functools
import http.server
import shutil
import threading

import pytest


class SilentHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Keep the output of the tests clean."""


@contextlib.contextmanager
def serve_folder(folder):
    """The address under which the files of a folder are served."""
    handler = functools.partial(SilentHandler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def start_browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        try:
            opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no browser: {error}")
        yield opened
        opened.close()


def open_page(browser, **options):
    """A page that keeps its errors in `problems` and the addresses that it asked for in `requested`."""
    opened = browser.new_page(**options)
    opened.problems, opened.requested = [], []
    opened.on("console", lambda message: opened.problems.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on("request", lambda request: opened.requested.append(request.url))
    return opened
