"""`python -m benchmarks [NAME…]`: the quick measurements, all of them or those named."""

from __future__ import annotations

import argparse
from importlib import import_module

QUICK = ("startup", "log", "prompts", "prefix")


def main() -> None:
    """Run them one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, allow_abbrev=False)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(QUICK)}")
    names = parser.parse_args().names or QUICK
    if unknown := set(names) - set(QUICK):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are: {', '.join(QUICK)}")
    for name in names:
        import_module(f"benchmarks.{name}").main()
        print()


main()
