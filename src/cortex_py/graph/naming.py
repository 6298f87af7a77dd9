"""Naming: the key under which the spellings of one name meet."""

from __future__ import annotations

import re
import unicodedata

from .values import ENTITY_TYPES, EntityType

__all__ = ["canonical", "keys_of"]

# Spellings that no rule joins. Values are keys as `canonical` makes them.
_ALIASES = {
    "k8s": "kubernetes",
    "kube": "kubernetes",
    "postgres": "postgresql",
    "pg": "postgresql",
    "psql": "postgresql",
    "golang": "go",
    "js": "javascript",
    "ecmascript": "javascript",
    "ts": "typescript",
    "py": "python",
    "python2": "python",
    "python3": "python",
    "cpp": "c++",
    "csharp": "c#",
    "fsharp": "f#",
    "objc": "objectivec",
    "vb": "visualbasic",
    "rb": "ruby",
    "ror": "rubyonrails",
    "rails": "rubyonrails",
    "sklearn": "scikitlearn",
    "tf": "tensorflow",
    "torch": "pytorch",
    "np": "numpy",
    "vscode": "visualstudiocode",
    "gh": "github",
    "ghactions": "githubactions",
    "gcp": "googlecloud",
    "googlecloudplatform": "googlecloud",
    "amazonwebservices": "aws",
    "amazons3": "s3",
    "awslambda": "lambda",
    "mssql": "sqlserver",
    "microsoftsqlserver": "sqlserver",
    "mongo": "mongodb",
    "elastic": "elasticsearch",
    "osx": "macos",
    "macosx": "macos",
    "wasm": "webassembly",
    "tailwindcss": "tailwind",
    "apachekafka": "kafka",
    "apachespark": "spark",
    "apacheairflow": "airflow",
    "googlechrome": "chrome",
    "internetexplorer": "ie",
    "microsoftexcel": "excel",
    "nodejs": "node",
    "reactjs": "react",
    "vuejs": "vue",
    "nextjs": "next.js",
    "expressjs": "express",
    "angularjs": "angularjs",
    "protocolbuffers": "protobuf",
    "mcp": "modelcontextprotocol",
}
_COMPANY = re.compile(r"(?<![\s,])[\s,]+(?:inc|incorporated|llc|ltd|limited|gmbh|corp|corporation|co|plc|ag|sa|bv)\.?$")
_VERSION = re.compile(r"(?<=[^\W\d])[\s-]+v?\d+(?:\.\d+)*(?:\.x)?$")
_DOT_JS = re.compile(r"[.\s-]js$")
_PARTING = re.compile(r"[\s._-]+")


def canonical(name: str, type: EntityType) -> str:
    """The key of a name: two spellings of one thing share it ("PostgreSQL", "postgres"; "Node.js", "nodejs")."""
    folded = unicodedata.normalize("NFKC", name).casefold().strip(" \t\r\n`'\"“”‘’")
    if type == "File":
        return folded.replace("\\", "/").removeprefix("./") or name
    if type == "Person":
        return _PARTING.sub(" ", folded.removeprefix("@")).strip() or folded or name
    if type == "Organization":
        folded = _COMPANY.sub("", folded.removeprefix("@"))
        return _PARTING.sub("", folded) or folded or name
    if type == "Concept":
        return _PARTING.sub(" ", folded).strip() or folded or name
    folded = _DOT_JS.sub("js", _VERSION.sub("", folded))
    key = _PARTING.sub("", folded) if folded.strip("._- ") else folded
    if key == "net" and folded.startswith("."):
        key = ".net"
    return _ALIASES.get(key, key) or name


def keys_of(name: str) -> list[str]:
    """All keys that a name could have, whatever it is the name of."""
    return list(dict.fromkeys(canonical(name, type) for type in ENTITY_TYPES))
