"""Duplicate banks: one schema, and one module per source of rows."""

from softcontam.duplicates.bank import Bank, BankRow, bank_rows, items_with_rows, open_bank, read_bank, write_bank

__all__ = ["Bank", "BankRow", "bank_rows", "items_with_rows", "open_bank", "read_bank", "write_bank"]
