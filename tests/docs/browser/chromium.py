"""A headless Chromium, driven over the DevTools protocol: what a page asked for, said, and looks
like.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tornado.websocket import websocket_connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str | None:
    """The browser's program, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab. ``call`` sends a command and gives its answer; what happens meanwhile is kept in
    ``events``.
    """

    def __init__(self, folder: Path):
        self.events: list[dict[str, Any]] = []
        self._loop, self._number = asyncio.new_event_loop(), 0
        flags = [
            "--headless=new",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-dev-shm-usage",
        ]
        flags += ["--no-sandbox"] if os.geteuid() == 0 else []
        flags += ["--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            [str(browser_path()), *flags],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if address := re.search(r"ws://\S+", line):
                break
        else:
            raise RuntimeError("the browser ended before it listened")
        self._socket = self._loop.run_until_complete(self._connect(address[0]))
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Network.setCacheDisabled", cacheDisabled=True)

    async def _connect(self, address: str) -> Any:
        return await websocket_connect(address, max_message_size=1 << 28)

    async def _write(self, text: str) -> None:
        await self._socket.write_message(text)

    async def _read(self, seconds: float) -> Any:
        return await asyncio.wait_for(self._socket.read_message(), seconds)

    def close(self) -> None:
        self._socket.close()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()
        self._process.terminate()
        self._process.wait(10)
        if self._process.stderr is not None:
            self._process.stderr.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._loop.run_until_complete(self._write(json.dumps(message)))
        while True:
            answer = self._next(20.0)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next(self, seconds: float) -> dict[str, Any]:
        text = self._loop.run_until_complete(self._read(seconds))
        if text is None:
            raise RuntimeError("the browser has gone")
        event: dict[str, Any] = json.loads(text)
        if "method" in event:
            self.events.append(event)
        return event

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        # As if a person did it
        options = {"returnByValue": True, "awaitPromise": True, "userGesture": True}
        answer = self.call("Runtime.evaluate", expression=script, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str, seconds: float = 15.0) -> Any:
        """Wait until an expression in the page is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.evaluate(f"!!({script})"):  # an element by its value would be {}
                    return self.evaluate(script)
            except RuntimeError:  # the page is just being left
                pass
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def look(self, width: int, scheme: str) -> None:
        """As wide a window, light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def open(self, address: str) -> None:
        """Go there, and wait until all is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.until("document.readyState == 'complete' && location.href != 'about:blank'")

    def complaints(self) -> list[str]:
        """Errors and warnings of the page since it was opened, failed requests, requests to
        elsewhere.
        """
        lines, addresses = [], {}
        for event in self.events:
            name, details = event["method"], event["params"]
            if name == "Runtime.exceptionThrown":
                lines.append(f"exception: {details['exceptionDetails']}")
            elif name == "Runtime.consoleAPICalled" and details["type"] in (
                "error",
                "warning",
                "assert",
            ):
                lines.append(f"console: {details['args']}")
            elif name == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
                lines.append(f"log: {details['entry']['text']} {details['entry'].get('url')}")
            elif name == "Network.requestWillBeSent":
                addresses[details["requestId"]] = details["request"]["url"]
                if not re.match(r"(http://127\.0\.0\.1:|data:|blob:)", details["request"]["url"]):
                    lines.append(f"asked elsewhere: {details['request']['url']}")
            elif name == "Network.loadingFailed" and not details.get("canceled"):
                lines.append(
                    f"failed: {addresses.get(details['requestId'])} {details['errorText']}"
                )
            elif name == "Network.responseReceived" and details["response"]["status"] >= 400:
                lines.append(f"{details['response']['status']}: {details['response']['url']}")
        return lines

    def picture(self, path: Path, whole: bool = False) -> None:
        """A screenshot."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))
