"""Pictures that are not drawn yet, and a process that draws them while this one goes on.

Nothing here imports matplotlib or jax before a picture is drawn.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple


class Drawing(NamedTuple):
    """A picture that is not drawn yet."""

    function: str  # of :mod:`jaxbandits._plots`, which gives a figure
    takes: dict[str, Any]  # its arguments: arrays, text, and objects that can be pickled
    form: str = "png"

    def draw(self) -> bytes:
        """As the bytes of a picture file."""
        from jaxbandits import _plots

        return _plots.encoded(getattr(_plots, self.function)(**self.takes), self.form)


class DrawingProcess:
    """Draws pictures, one after the other. A context manager.

    matplotlib takes half a second to import and as long to draw, which would hold up the rest: with
    ``apart`` a process of its own does it, if this one has not imported matplotlib already.
    """

    def __init__(self, apart: bool):
        self._line = ThreadPoolExecutor(1)
        self._process: subprocess.Popen[bytes] | None = None
        if apart and "matplotlib" not in sys.modules:
            command = [sys.executable, "-c", "from jaxbandits.apps.drawing import serve; serve()"]
            pipes: Any = {
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.DEVNULL,
            }
            with contextlib.suppress(OSError):
                # A session of its own: Ctrl-C is the business of this process, not of that.
                self._process = subprocess.Popen(command, **pipes, start_new_session=True)

    def __enter__(self) -> DrawingProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._line.shutdown(cancel_futures=True)

    def submit(self, drawing: Drawing) -> Future[bytes]:
        """The bytes of its file, some time."""
        return self._line.submit(self._draw_apart, drawing)

    def _draw_apart(self, drawing: Drawing) -> bytes:
        if (
            self._process is not None
            and self._process.stdin is not None
            and self._process.stdout is not None
        ):
            with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
                pickle.dump(drawing, self._process.stdin)
                self._process.stdin.flush()
                if (picture := pickle.load(self._process.stdout)) is not None:
                    return picture
        return drawing.draw()  # what went wrong there is told from here


def serve() -> None:
    """The other process: drawings come on its standard input, pictures go to its standard output."""
    from jaxbandits import _plots  # noqa: F401  # before the first drawing comes

    while True:
        try:
            drawing = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        picture = None
        with contextlib.suppress(Exception):
            picture = drawing.draw()
        pickle.dump(picture, sys.stdout.buffer)
        sys.stdout.buffer.flush()
