"""softcontam: controlled finetuning experiments on soft contamination of benchmarks."""

__version__ = "0.1.0"
