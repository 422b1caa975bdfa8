import pytest

from sessions import interpreting


@pytest.fixture(scope="module")
def spark(spark):
    """No generated code: these tests are not about what Spark computes, and compiling is what they cost."""
    with interpreting(spark):
        yield spark
