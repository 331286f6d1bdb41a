"""Figures, tables, pages and trackers. Nothing is imported here: workers that only track load no statistics."""
