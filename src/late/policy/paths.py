"""Where a path leads, and what that means: inside or outside, a secret, or a file that nobody but the person changes.

Paths are judged by where they really lead: links, `..` and `~` are resolved first. Names are compared without regard
to case, because on some file systems `.ENV` is `.env`.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, Protocol

from late.config.paths import home_dir, user_config_file
from late.errors import UserError

Kind = Literal["inside", "device", "temporary", "home", "system", "elsewhere"]


class Workspace(Protocol):
    """What the policy needs to know of a workspace; `late.workspace.workspace.Workspace` is one."""

    @property
    def root(self) -> Path:
        """Real path of the project's folder."""
        ...

    def hidden(self, path: Path, /) -> bool:
        """Whether `.llmignore` hides a path inside the workspace."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads."""

    real: Path
    kind: Kind
    secret: str = ""
    """Why its contents are nobody's business, as words behind "it is"; empty for an ordinary file."""
    hidden: bool = False
    """`.llmignore` hides it."""
    guarded: str = ""
    """Why it is never written to, as a sentence's end; empty where it may be asked about."""
    delicate: str = ""
    """Why writing to it is asked about even in a step that names it."""


FREE_DEVICES = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})

_EXAMPLE_SUFFIXES = ("example", "sample", "template", "dist", "tpl", "schema")
_SECRET_NAMES = (
    ".env", ".env.*", "*.env", ".envrc",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "ssh_host_*_key",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.keychain", "*.keychain-db",
    "credentials", "credentials.json", "credentials.toml", "credentials.yml", "credentials.yaml", "credentials.csv",
    "credentials.tfrc.json", "application_default_credentials.json", "client_secret*.json", "service-account*.json",
    "service_account*.json", "secret.yml", "secret.yaml", "secret.json", "secret.toml", "secrets.yml", "secrets.yaml",
    "secrets.json", "secrets.toml", "secrets.ini", ".netrc", "_netrc", ".pypirc", ".git-credentials", ".pgpass",
    ".my.cnf", ".dockercfg", ".htpasswd", ".vault-token", ".vault_pass", ".vault_pass.txt", "kubeconfig",
    ".bash_history", ".zsh_history", ".sh_history", ".python_history", ".node_repl_history", ".psql_history",
    ".mysql_history", ".sqlite_history", ".rediscli_history", ".histfile", "shadow", "shadow-", "gshadow", "gshadow-",
)  # fmt: skip
_PUBLIC_PEM = (
    "ca.pem",
    "cacert.pem",
    "cert.pem",
    "certs.pem",
    "chain.pem",
    "fullchain.pem",
    "*ca-bundle*.pem",
    "public.pem",
)
_SECRET_FOLDERS = (
    (".ssh",), (".gnupg",), (".aws",), (".azure",), (".kube",), (".password-store",), (".oci",), (".config", "gh"),
    (".config", "gcloud"), (".config", "hub"), (".config", "op"), (".config", "rclone"), (".config", "doctl"),
    (".docker", "config.json"), (".cargo", "credentials"), (".gem", "credentials"), (".local", "share", "keyrings"),
    (".mozilla",), (".thunderbird",), (".config", "google-chrome"), (".config", "chromium"),
    (".config", "bravesoftware"),
    ("library", "keychains"), ("library", "cookies"), ("library", "application support", "google", "chrome"),
    ("library", "application support", "firefox"), ("etc", "ssl", "private"),
)  # fmt: skip
_SECRET_IN_HOME = (
    ".npmrc",
    ".yarnrc.yml",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
)
_SECRET_OF_A_PROCESS = frozenset({"environ", "mem", "auxv", "fd", "root", "cwd", "task"})

_SYSTEM = (
    "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/boot", "/sys", "/proc", "/dev", "/run", "/var",
    "/opt", "/srv", "/root", "/snap", "/System", "/Library", "/Applications", "/private/etc", "/private/var", "/nix",
)  # fmt: skip
_HOMES = ("/home", "/Users")
_AGENT_FOLDERS = frozenset(
    {
        ".late",
        ".claude",
        ".codex",
        ".cursor",
        ".gemini",
        ".qwen",
        ".opencode",
        ".continue",
        ".windsurf",
        ".roo",
        ".kiro",
    }
)
_AGENT_FILES = frozenset({".mcp.json", ".aider.conf.yml", ".cursorrules", ".clinerules", ".windsurfrules"})
_EDITOR_FOLDERS = frozenset({".vscode", ".idea", ".zed", ".devcontainer", ".husky"})


class Places:
    """The rules, for one workspace. `own` are `late`'s folders, where approvals and sessions are kept."""

    def __init__(self, workspace: Workspace, own: tuple[Path, ...] = ()) -> None:
        self._workspace = workspace
        self.root = workspace.root
        self.home = _home()
        self._own = tuple(Path(os.path.realpath(path)) for path in (*own, *_config_folder()))
        self._temporary = tuple(
            dict.fromkeys(os.path.realpath(path) for path in ("/tmp", "/var/tmp", tempfile.gettempdir()))  # noqa: S108
        )

    def look(self, path: str, base: Path | None = None) -> Place:
        """Judge a path as a program in the folder `base` (default: the root) would open it: `~` is no home."""
        joined = str((base or self.root) / path)
        lexical = os.path.normpath(joined)
        if lexical in FREE_DEVICES:
            return Place(Path(lexical), "device")
        try:
            real = Path(os.path.realpath(joined))
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                real.lstat()
        except (OSError, ValueError):  # a NUL byte, a name that is too long: no program can open it either
            return Place(Path(lexical), "elsewhere")
        kind = self._kind(real)
        secret = self._secret(real) or self._secret(Path(lexical))
        return Place(
            real=real,
            kind=kind,
            secret=secret,
            hidden=kind == "inside" and real != self.root and self._workspace.hidden(real),
            guarded=self._guarded(real, kind),
            delicate=self._delicate(real) if kind == "inside" else "",
        )

    @property
    def hides_files(self) -> bool:
        """Whether the project's own `.llmignore` hides anything from tools."""
        return (self.root / ".llmignore").exists()

    def shown(self, place: Place) -> str:
        """The path as a person knows it: relative inside of the workspace, absolute elsewhere."""
        return place.real.relative_to(self.root).as_posix() if place.kind == "inside" else str(place.real)

    def _kind(self, real: Path) -> Kind:
        if real.is_relative_to(self.root):
            return "inside"
        text = str(real)
        if text in FREE_DEVICES:
            return "device"
        if real.is_relative_to(self.home) or any(_below(text, homes) for homes in _HOMES):
            return "home"
        if any(_below(text, folder) for folder in self._temporary):
            return "temporary"
        if text == "/" or any(_below(text, folder) for folder in _SYSTEM):
            return "system"
        return "elsewhere"

    def _secret(self, path: Path) -> str:
        parts = [part.casefold() for part in path.parts]
        if len(parts) > 2 and parts[1] == "proc" and _SECRET_OF_A_PROCESS & set(parts[2:]):
            return "what a process keeps in memory"
        for folder in _SECRET_FOLDERS:
            if any(tuple(parts[i : i + len(folder)]) == folder for i in range(1, len(parts))):
                return "a place where keys and tokens are kept"
        if secret_name(path.name) and not path.is_dir():
            return "a file of secrets"
        if path.is_relative_to(self.home) and path.relative_to(self.home).as_posix().casefold() in _SECRET_IN_HOME:
            return "a file of secrets"
        return ""

    def _guarded(self, real: Path, kind: Kind) -> str:
        if any(real.is_relative_to(folder) for folder in self._own):
            return "late's own files are changed by the person only"
        parts = [part.casefold() for part in (real.relative_to(self.root) if kind == "inside" else real).parts]
        if ".git" in parts:
            return "git's own files are changed through git only"
        if kind == "system":
            return "it belongs to the system"
        if kind == "home":
            return "it lies in the home folder, outside of the project"
        if _AGENT_FOLDERS & set(parts) or (parts and parts[-1] in _AGENT_FILES):
            return "what agents may do is changed by the person only"
        return ""

    def _delicate(self, real: Path) -> str:
        parts = [part.casefold() for part in real.relative_to(self.root).parts]
        if parts and parts[-1] == ".llmignore":
            return "it says what no tool may show"
        if _EDITOR_FOLDERS & set(parts):
            return "programs run what it says"
        return ""


def secret_name(name: str) -> bool:
    """Whether a file of this name holds secrets, wherever it lies. Examples (`.env.example`) do not."""
    folded = name.casefold()
    if folded.rsplit(".", 1)[-1] in _EXAMPLE_SUFFIXES or any(fnmatchcase(folded, pattern) for pattern in _PUBLIC_PEM):
        return False
    return any(fnmatchcase(folded, pattern) for pattern in _SECRET_NAMES)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _home() -> Path:
    try:
        return Path(os.path.realpath(home_dir()))
    except UserError:
        return Path("/nonexistent")


def _config_folder() -> tuple[Path, ...]:
    try:
        return (user_config_file().parent,)
    except UserError:
        return ()
