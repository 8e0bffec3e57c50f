"""PostgreSQL's complaints in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from satchel.errors import IndexBusy, IndexDamaged, IndexUnwritable, InvalidInput, InvalidOption, StoreUnavailable


@contextmanager
def map_postgres_errors(where: str) -> Iterator[None]:
    """Run statements; whatever the server says against them is said in our words."""
    try:
        yield
    except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
        raise IndexBusy(where, "") from error
    except errors.QueryCanceled as error:
        raise StoreUnavailable(where, f"a statement took too long and was stopped ({_said(error)})") from error
    except errors.ProgramLimitExceeded as error:
        raise InvalidInput(
            "id", "…", f"is longer than PostgreSQL can index, about 2,600 bytes ({_said(error)})"
        ) from error
    except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction) as error:
        raise IndexUnwritable(where, _said(error)) from error
    except (errors.DiskFull, errors.OutOfMemory) as error:
        raise IndexUnwritable(where, _said(error)) from error
    except (errors.DataCorrupted, errors.IndexCorrupted, errors.UndefinedTable, errors.UndefinedColumn) as error:
        raise IndexDamaged(where, _said(error)) from error
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
        raise StoreUnavailable(where, f"{_said(error)}; is it running, and is the address right?") from error
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:  # it did not come as far as the server: what is said may quote the URL
            raise InvalidOption("store", "postgresql://...", "is no URL that PostgreSQL can connect to") from None
        raise StoreUnavailable(where, f"{type(error).__name__}: {_said(error)}") from error
    except psycopg.DataError as error:
        raise InvalidInput("value", "…", f"cannot be kept in PostgreSQL ({_said(error)})") from error
    except psycopg.Error as error:
        raise StoreUnavailable(where, f"{type(error).__name__}: {_said(error)}") from error


def _said(error: BaseException) -> str:
    """The first line of what was said: further lines may quote values."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
