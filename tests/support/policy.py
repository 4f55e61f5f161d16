"""A policy on real files, in a home folder of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from late.policy.approvals import Approvals
from late.policy.gate import Policy, Question, Verdict
from late.workspace.workspace import Workspace

STRICTNESS = ("auto", "restricted", "ask", "never")


class Bench:
    """A project `~/proj`; HOME has to be `home` already."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "proj"
        (self.root / "src").mkdir(parents=True)
        for name, text in {
            "a.txt": "alpha\n",
            "README.md": "# A project\n",
            "package.json": "{}\n",
            "src/app.py": "def main(): ...\n",
        }.items():
            (self.root / name).write_text(text)
        self.workspace = Workspace(self.root)
        self.approvals = Approvals(self.root, home / ".local/share/late/approvals")
        self.policy = Policy(self.workspace, self.approvals)

    def prepare(self, shell: str) -> None:
        """Run what a case needs, in a git repository."""
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        subprocess.run(["bash", "-c", shell], cwd=self.root, check=False, capture_output=True)

    def run(self, command: str, role: str = "coder", cwd: str | None = None) -> Verdict:
        """The verdict on a command."""
        return self.policy.decide(Question(role=role, tool="bash", effect="execute", command=command, cwd=cwd))

    def read(self, path: str, role: str = "coder") -> Verdict:
        """The verdict on reading a path."""
        return self.policy.decide(Question(role=role, tool="read_file", effect="read", paths=(path,)))

    def write(self, path: str, step_files: tuple[str, ...] | None = None, role: str = "coder") -> Verdict:
        """The verdict on writing a path."""
        return self.policy.decide(
            Question(role=role, tool="write_file", effect="write", paths=(path,), step_files=step_files)
        )
