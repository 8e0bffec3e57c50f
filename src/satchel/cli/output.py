"""Where the data goes: stdout, or a file that is written whole or not at all; and progress on a terminal."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    from satchel.models.context import Context


def print_context(
    context: Context, output: Path | None, *, as_json: bool = False, provider_content: object = None
) -> None:
    """Write a context: its text, all of it as JSON, or a provider's message content; nothing if it has no text."""
    if as_json:
        write_json(context.to_dict(), output)
    elif provider_content is not None and context.text:
        write_json(provider_content, output)
    elif context.text:
        write_context(context.text, output)


def write_context(text: str, output: Path | None) -> None:
    """Write what a model is given: to programs and files exactly that, for a line end more could be a token more."""
    _write(f"{text}\n" if output is None and sys.stdout.isatty() else text, output)


def write_output(text: str, output: Path | None) -> None:
    """Write the text and a final line end."""
    _write(f"{text}\n", output)


def write_json(value: object, output: Path | None = None) -> None:
    """Write a value as JSON."""
    write_output(json.dumps(value, ensure_ascii=False, indent=2), output)


def _write(text: str, output: Path | None) -> None:
    data = text.encode()
    if output is None:
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            leave_as_others_do()
        return
    try:
        # A link stands for what it points to.
        target = output.resolve()
        if target.exists() and not target.is_file():
            # A pipe or a device is written to, not replaced.
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(output)) from None


def leave_as_others_do() -> None:
    """When the reader goes (`| head`), go as other Unix programs do: at once and silently."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)


def _replace(target: Path, data: bytes) -> None:
    """Written beside it and moved over it: whoever stops us leaves the old file or the new one, never half of one."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, _mode_for(target))
        os.replace(name, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _mode_for(target: Path) -> int:
    """The rights that the file has, or that a new one would get."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


class ProgressBar:
    """A bar on stderr, drawn from the first `show` until `stop`; nothing where stderr is no terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._is_off = quiet or not sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def show(self, doing: str, done: int, of: int = 0) -> None:
        """Show how much is done of how much (0: unknown)."""
        if self._is_off:
            return
        if self._bar is None:
            from rich import progress
            from rich.console import Console

            counts = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
            columns = (progress.SpinnerColumn(), progress.TextColumn("{task.description}"), *counts)
            self._bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(doing, total=None)
        self._bar.update(self._task, description=doing, completed=done, total=of or None)

    def stop(self) -> None:
        """Remove the bar; the next `show` draws a new one."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
