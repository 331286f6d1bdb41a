"""Benchmarks: items with families, how they are scored, and where they come from."""

from softcontam.benchmarks.item import Benchmark, Item, ItemSet, Score, Source, load_benchmark

__all__ = ["Benchmark", "Item", "ItemSet", "Score", "Source", "load_benchmark"]
