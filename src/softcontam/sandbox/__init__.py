"""Runs model-written code where it can do no harm, and says what came of it."""

from softcontam.sandbox.pool import Sandbox, execute, working
from softcontam.sandbox.verdict import CATEGORIES, AssertTests, Category, Limits, StdioTests, Submission, Tests, Verdict

__all__ = [
    "CATEGORIES",
    "AssertTests",
    "Category",
    "Limits",
    "Sandbox",
    "StdioTests",
    "Submission",
    "Tests",
    "Verdict",
    "execute",
    "working",
]
