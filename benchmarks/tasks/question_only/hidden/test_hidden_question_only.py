from pathlib import Path


def test_nothing_was_changed():
    text = Path("shop.py").read_text()
    assert text.count("def ") == 2
    assert "119 // 100" in text
