"""Duplicate banks: one schema, and one module per kind of row or source of rows."""

from softcontam.duplicates.bank import Bank, BankRow, read_bank, write_bank
from softcontam.duplicates.kinds import open_bank
from softcontam.duplicates.material import Material
from softcontam.duplicates.sources import bank_rows, items_with_rows

__all__ = ["Bank", "BankRow", "Material", "bank_rows", "items_with_rows", "open_bank", "read_bank", "write_bank"]
