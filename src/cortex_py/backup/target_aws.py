"""Credentials and region for S3, from the variables and the files that every tool for it reads.

Services that hand out credentials over the network are never asked: a backup reaches its target and nothing else.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import ConfigurationError
from ..paths import expanded

__all__ = ["AwsCredentials", "aws_credentials", "aws_region"]

_USUAL_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class AwsCredentials:
    key_id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


def aws_credentials(environment: Mapping[str, str]) -> AwsCredentials:
    """The credentials in the environment, else those of the profile in the file of credentials."""
    source: Mapping[str, str] = {
        name: environment.get(name.upper(), "")
        for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    }
    if not source["aws_access_key_id"] and not source["aws_secret_access_key"]:
        source = _section(environment, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", _profile(environment))
    key_id, secret = source.get("aws_access_key_id", ""), source.get("aws_secret_access_key", "")
    if not key_id or not secret:
        raise ConfigurationError(
            "There are no credentials for S3.",
            remedy="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with a key in ~/.aws/credentials; "
            "`aws configure export-credentials --format env` writes those of other kinds.",
            field="AWS_ACCESS_KEY_ID",
        )
    return AwsCredentials(key_id, secret, source.get("aws_session_token") or None)


def aws_region(environment: Mapping[str, str]) -> str:
    """The region that the environment or the profile names."""
    named = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if named:
        return named
    profile = _profile(environment)
    title = profile if profile == "default" else f"profile {profile}"
    return _section(environment, "AWS_CONFIG_FILE", "~/.aws/config", title).get("region") or _USUAL_REGION


def _profile(environment: Mapping[str, str]) -> str:
    return environment.get("AWS_PROFILE") or "default"


def _section(environment: Mapping[str, str], variable: str, usual: str, title: str) -> Mapping[str, str]:
    path = expanded(environment.get(variable) or usual)
    # Without interpolation: a secret may hold a percent sign.
    parser = configparser.RawConfigParser(default_section="")
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, configparser.Error):
        # Without the cause, which would show lines of the file.
        raise ConfigurationError(f"{path} cannot be read.", remedy="Mend it, or check its permissions.") from None
    return dict(parser[title]) if parser.has_section(title) else {}
