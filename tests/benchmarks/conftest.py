import pytest
from penstock.runtime.session import spark_session


@pytest.fixture(scope="session")
def spark():
    return spark_session()
