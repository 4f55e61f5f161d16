"""Keeps a child program from outliving its parent, on every POSIX system.

Run as a script: `python supervisor.py PROGRAM ARGUMENT…`. The parent holds the other end of this process's standard
input; when that closes (the parent closed it, or died in whatever way) the program is terminated, and killed after
five seconds. The exit status is the program's. Linux' `PR_SET_PDEATHSIG` would do without this process, but only
there, and it fires when the *thread* that started the program ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

_KILL_AFTER_S = 5.0


def main() -> None:
    """Run the program named on the command line until it ends or standard input closes."""
    program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)

    def follow() -> None:
        code = program.wait()
        os._exit(code if code >= 0 else 128 - code)

    threading.Thread(target=follow, daemon=True).start()
    while os.read(sys.stdin.fileno(), 1024):
        pass
    program.terminate()
    try:
        program.wait(_KILL_AFTER_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


if __name__ == "__main__":
    main()
