import re


def slugify(title: str) -> str:
    """Turn a title into a URL slug."""
    slug = title.lower()
    slug = re.sub(r"[^a-z0-9]+", "-", slug)
    return slug
