"""Python code written out from its syntax tree as people write it."""

from __future__ import annotations

import ast

from softcontam.benchmarks.python_code import syntax_tree


def written(tree: ast.Module) -> str:
    """The code of a syntax tree, without the second brackets that ``ast`` puts around ``sum(x for x in y)``."""
    code = ast.unparse(ast.fix_missing_locations(tree))
    before = syntax_tree(code)
    if before is None:
        return code
    lines = [line.encode() for line in code.split("\n")]
    brackets: list[tuple[int, int]] = []
    for node in ast.walk(before):
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            inner = node.args[0]
            if isinstance(inner, ast.GeneratorExp) and inner.end_lineno and inner.end_col_offset:
                brackets += [(inner.lineno - 1, inner.col_offset), (inner.end_lineno - 1, inner.end_col_offset - 1)]
    for line, column in sorted(brackets, reverse=True):
        lines[line] = lines[line][:column] + lines[line][column + 1 :]
    shorter = b"\n".join(lines).decode(errors="replace")
    after = syntax_tree(shorter)  # places inside f-strings are not where Python 3.11 says
    return shorter if after is not None and ast.dump(after) == ast.dump(before) else code
