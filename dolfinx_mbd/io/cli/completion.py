"""The command `dolfinx-mbd completion`: a script that completes commands and options in Bash."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any

_SCRIPT = """\
# completion of dolfinx-mbd in Bash and, after bashcompinit, in Zsh
_dolfinx_mbd() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[1]}} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{commands}" -- "$word"))
    return
  fi
  case $word in -*) case $command in
{cases}
  esac ;; esac
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$word"))
  else COMPREPLY=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _dolfinx_mbd dolfinx-mbd
"""


def add_to(commands: Any) -> None:
    """Add `completion` to the commands."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in the shell",
        description='Print a script. Bash: eval "$(dolfinx-mbd completion)". Zsh needs '
        "'autoload -U bashcompinit && bashcompinit' before it.",
    )

    def run(options: argparse.Namespace) -> int:
        print(_script(commands.choices), end="")
        return 0

    parser.set_defaults(run=run)


def _script(commands: Mapping[str, argparse.ArgumentParser]) -> str:
    """Return the script for the commands and their options."""
    cases = [
        f'    {name}) words="{" ".join(_options(parser))}" ;;' for name, parser in commands.items()
    ]
    return _SCRIPT.format(commands=" ".join(commands), cases="\n".join(cases))


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """Return the long options of a command, from its help."""
    return list(
        dict.fromkeys(re.findall(r"^  (?:-\w.*?, )?(--[\w-]+)", parser.format_help(), re.M))
    )
