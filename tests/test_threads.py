import logging

from penstock import threads

LOGGER = logging.getLogger("penstock.test")


def test_an_error_that_ends_a_thread_is_logged_and_told(caplog):
    """Defect 10: a service thread that died said nothing to anyone."""
    told = []

    def work():
        raise ValueError("surprise")

    thread = threads.service("penstock-work", work, LOGGER, told.append)
    thread.start()
    thread.join()
    assert [str(each) for each in told] == ["surprise"]
    assert "thread penstock-work was ended by an error" in caplog.text
    assert [str(each.exc_info[1]) for each in caplog.records] == ["surprise"]


def test_a_thread_that_ends_well_tells_nobody():
    told = []
    thread = threads.service("penstock-work", list, LOGGER, told.append)
    thread.start()
    thread.join()
    assert thread.daemon
    assert told == []
