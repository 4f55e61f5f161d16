"""Run `late` as `python -m late`."""

from late.cli import main

raise SystemExit(main())
