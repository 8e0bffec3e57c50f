"""Where the data goes: stdout, or a file that is written whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.models.context import Context


def print_context(
    context: Context, output: Path | None, *, as_json: bool = False, provider_content: object = None
) -> None:
    """Write a context: its text, all of it as JSON, or a provider's message content; nothing if it is empty."""
    if as_json:
        write_output(json.dumps(context.to_dict(), ensure_ascii=False, indent=2), output)
    elif context.is_empty and not context.text:
        return
    elif provider_content is not None:
        write_output(json.dumps(provider_content, ensure_ascii=False, indent=2), output)
    else:
        write_context(context.text, output)


def write_context(text: str, output: Path | None) -> None:
    """Write what a model is given: to programs and files exactly that, for a line end more could be a token more."""
    _write(f"{text}\n" if output is None and sys.stdout.isatty() else text, output)


def write_output(text: str, output: Path | None) -> None:
    """Write the text and a final line end."""
    _write(f"{text}\n", output)


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
