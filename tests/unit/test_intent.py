"""Requests that plainly are a question or a change, and those that are not plain."""

import pytest

from late.agent.intent import plain_intent


@pytest.mark.parametrize(
    "request_",
    [
        "Which function in shop.py computes the price with tax? Only answer, change nothing.",
        "How is the total computed?",
        "Explain what slug.py does. Don't change anything.",
        "Where is the VAT rate defined?",
    ],
)
def test_a_question_is_plain(request_):
    assert plain_intent(request_) == "question"


@pytest.mark.parametrize(
    "request_",
    [
        "Fix it.",
        "The total ignores the quantity. Fix it so that test_cart.py passes.",
        "Add a function median(values). Do not change mean.",
        "slugify leaves a dash at the end, for example for '  What is new?  '. Fix slug.py.",
        "please rename a to b everywhere",
    ],
)
def test_a_change_is_plain(request_):
    assert plain_intent(request_) == "change"


@pytest.mark.parametrize(
    "request_",
    ["", "hello", "median is wrong for even counts", "Warum ist das so?", "What is wrong with a.py? Fix it."],
)
def test_everything_else_takes_understanding(request_):
    assert plain_intent(request_) is None
