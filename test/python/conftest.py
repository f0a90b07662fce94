"""The gateway that test/python-sdks.test.ts starts for these tests."""
import os

import pytest


@pytest.fixture
def origin() -> str:
    """Without a path: `http://127.0.0.1:<port>`."""
    return os.environ["GATEHOUSE_ORIGIN"]


@pytest.fixture
def tls_origin() -> str:
    """The same with `https`, and a certificate that signs itself."""
    return os.environ["GATEHOUSE_TLS_ORIGIN"]


@pytest.fixture
def token() -> str:
    return os.environ["GATEHOUSE_TOKEN"]


@pytest.fixture
def narrow_token() -> str:
    """May use `sandbox/compact` only."""
    return os.environ["GATEHOUSE_NARROW_TOKEN"]
