"""Errors that a user can act on: what happened, where, and what to do."""


class SoftcontamError(Exception):
    """Base of every error that softcontam raises on purpose. Its text is shown without a traceback."""


class ConfigError(SoftcontamError):
    """A setting that cannot be met; raised before anything is loaded or run."""


class DataError(SoftcontamError):
    """A file or row that is missing, damaged or not of the stated schema."""


class LeakageError(SoftcontamError):
    """A row that would break the split: a held-out family in the training mixture."""


class TokenizationError(SoftcontamError):
    """A row that training would not see whole, or whose loss mask does not cover its completion."""


class StoreError(SoftcontamError):
    """A cell folder that is damaged or in use."""


class CellBusyError(StoreError):
    """A cell that another process is running."""


class ArmMismatchError(SoftcontamError):
    """Two cells that were to be contrasted but differ in more than the inserted rows."""


class SandboxError(SoftcontamError):
    """No way to isolate model-written code works on this machine, or one broke while it was in use."""
