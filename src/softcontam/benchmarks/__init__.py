"""Benchmarks: items with families, how they are scored, and where they come from."""

from softcontam.benchmarks.item import Benchmark, Item, Source, load_benchmark

__all__ = ["Benchmark", "Item", "Source", "load_benchmark"]
