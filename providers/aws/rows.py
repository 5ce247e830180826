"""All pages of a small listing, as rows. What a launch looks up is looked up whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from providers.aws.answers import Answer, answer_of
from providers.aws.errors import MALFORMED, BrokenAnswerError
from providers.aws.translate import MalformedAnswerError, next_token

MAX_PAGES = 100
"""More than any of these listings has; without an end a cloud that goes on for ever would hold a launch."""


def all_rows(ask: Callable[[str | None], Answer], key: str) -> list[Answer]:
    """Return the rows of all pages; `ask` gets the token of the page, None for the first.

    Raises:
        BrokenAnswerError: if a page has no such list, or the listing does not come to an end.
        Exception: anything in CALL_ERRORS.
    """
    rows: list[Answer] = []
    token: str | None = None
    for _ in range(MAX_PAGES):
        page = _page(ask, token)
        rows.extend(_rows(page, key))
        try:
            following = next_token(page)
        except MalformedAnswerError as error:
            raise BrokenAnswerError(MALFORMED, str(error)) from error
        if following is None:
            return rows
        if following == token:
            break
        token = following
    code = "endless_listing"
    raise BrokenAnswerError(code, f"{key} did not come to an end")


def _page(ask: Callable[[str | None], Answer], token: str | None) -> Answer:
    return answer_of(lambda: ask(token))


def _rows(page: Answer, key: str) -> list[Answer]:
    rows = page.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise BrokenAnswerError(MALFORMED, f"no list of {key}")
    return rows
