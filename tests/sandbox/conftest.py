from collections.abc import Iterator

import pytest
from backends import ISOLATING, OPENED, sandbox

from softcontam.sandbox import Sandbox


@pytest.fixture(scope="session", autouse=True)
def _sandboxes_end_with_the_session() -> Iterator[None]:
    yield
    for opened in OPENED:
        opened.close()


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] if name == "wasi" else []) for name in ISOLATING])
def each(request: pytest.FixtureRequest) -> Sandbox:
    """Each isolating back-end in turn."""
    return sandbox(request.param)
