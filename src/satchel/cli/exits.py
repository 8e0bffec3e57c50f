"""Exit codes of the program, and the exit code for each error."""

from __future__ import annotations

from enum import IntEnum

from satchel import errors


class Exit(IntEnum):
    """Exit codes of the program."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOTHING_FOUND = 3
    OVER_BUDGET = 4
    INTERRUPTED = 130


EXIT_CODES: dict[type[errors.SatchelError], Exit] = {
    errors.SatchelError: Exit.ERROR,
    errors.InvalidInput: Exit.ERROR,
    errors.InvalidOption: Exit.USAGE,
    errors.InvalidHit: Exit.ERROR,
    errors.BudgetCannotBeMet: Exit.OVER_BUDGET,
    errors.UnknownTokenizer: Exit.USAGE,
    errors.TokenizerUnavailable: Exit.ERROR,
    errors.RerankerMissing: Exit.USAGE,
    errors.UnknownPiece: Exit.NOTHING_FOUND,
    errors.IndexProblem: Exit.ERROR,
    errors.IndexTooNew: Exit.ERROR,
    errors.IndexBusy: Exit.ERROR,
    errors.IndexNotReady: Exit.ERROR,
    errors.StoreUnavailable: Exit.ERROR,
    errors.StoresDiffer: Exit.ERROR,
    errors.MoveUnfinished: Exit.ERROR,
    errors.IndexDamaged: Exit.ERROR,
    errors.IndexUnwritable: Exit.ERROR,
    errors.EmbedderMismatch: Exit.ERROR,
    errors.EmbedderUnavailable: Exit.ERROR,
    errors.LanguageModelUnavailable: Exit.ERROR,
    errors.WorkspaceMissing: Exit.USAGE,
    errors.NotAllowed: Exit.USAGE,
    errors.ServerUnavailable: Exit.ERROR,
    errors.ExtraMissing: Exit.ERROR,
    errors.UnknownBlock: Exit.NOTHING_FOUND,
    errors.AmbiguousBlock: Exit.USAGE,
    errors.LibraryUnavailable: Exit.ERROR,
    errors.PlatformUnsupported: Exit.ERROR,
    errors.LibraryMismatch: Exit.ERROR,
    errors.UnknownPage: Exit.NOTHING_FOUND,
}


def exit_code_of(error: errors.SatchelError) -> Exit:
    """Return the exit code for an error."""
    return EXIT_CODES[type(error)]
