"""tinyworld: the benchmark, related benchmark, clean pool and base model that ship with softcontam."""
