"""Two who set an endpoint at once: the audit has what each of them found."""

from tests.races.sessions import Session

SET = "select rdq.set_endpoint('q', 'hook', 'https://example.org/' || %s)"


def test_of_two_who_set_an_endpoint_the_second_finds_what_the_first_set(
    first: Session, second: Session
) -> None:
    with first.transaction():
        first.execute(SET, "first")
        other = second.start(second.execute, SET, "second")
        other.wait_until_blocked_by(first)
    other.result()
    assert second.rows(
        "select before ->> 'url', after ->> 'url' from rdq.audit"
        " where action = 'set_endpoint' order by id"
    ) == [
        (None, "https://example.org/first"),
        ("https://example.org/first", "https://example.org/second"),
    ]
