from collections.abc import Iterator

import pytest
from backends import ISOLATING, sandbox, why_not

from softcontam.sandbox import Sandbox


@pytest.fixture(scope="session", autouse=True)
def _sandboxes_end_with_the_session() -> Iterator[None]:
    yield
    for name in ISOLATING:
        if sandbox.cache_info().currsize and why_not(name) is None:
            sandbox(name).close()


@pytest.fixture(params=ISOLATING)
def each(request: pytest.FixtureRequest) -> Sandbox:
    """Each isolating back-end in turn."""
    return sandbox(request.param)
