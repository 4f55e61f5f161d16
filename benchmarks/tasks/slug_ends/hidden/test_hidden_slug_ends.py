import pytest
from slug import slugify


@pytest.mark.parametrize(
    ("title", "slug"), [("Hello World", "hello-world"), ("  What is new?  ", "what-is-new"), ("!!!", "")]
)
def test_a_slug_has_dashes_only_inside(title, slug):
    assert slugify(title) == slug
