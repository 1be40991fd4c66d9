"""Run the campaigns: ``python3 -m tests.campaigns [--short] [--part PART] [--only NAME]``.

The result is a table of the numbers of cases. A case is handled if the package refuses it by an
error of its own or gives the correct result; the other columns count exceptions of other types,
wrong results, hangs and crashes.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.campaigns.runner import MINUTES, PARTS, SEED, run_part, table


def main() -> int:
    """Run the parts, print a table, and return 1 if a part failed."""
    times = ", ".join(f"{part} {minutes}" for part, minutes in MINUTES.items())
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.campaigns",
        description=(__doc__ or "").partition("\n\n")[2],
        epilog=f"The long form takes about {sum(MINUTES.values())} minutes on two cores ({times}), "
        "the short form about one and a half; compiling comes on top the first time. The exit "
        "status is 1 if a case is wrong, hangs or crashes, or if more than 0.1 %% of them end with "
        "an exception of another type.",
    )
    parser.add_argument("--part", choices=list(PARTS), help="run one part only")
    parser.add_argument("--only", help="run one function, or function.argument, or one group")
    parser.add_argument("--short", action="store_true", help="run a sample of the cases")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--list", action="store_true", help="list every case that is not handled")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    outcomes = {}
    for part in [options.part] if options.part else list(PARTS):
        outcomes[part] = run_part(part, short=options.short, only=options.only, seed=options.seed)
        faults = [o for o in outcomes[part] if o.kind != "handled"]
        if options.list or options.only:
            for o in outcomes[part] if options.only else faults:
                print(f"{o.kind:8} {o.group}.{o.item} = {o.attack}: {o.detail}")
        else:
            groups = Counter((o.group, o.item, o.kind, o.detail.split(":")[0]) for o in faults)
            for (group, item, kind, detail), n in sorted(groups.items()):
                print(f"{n:5} {kind:8} {group}.{item}: {detail}")
    print(table(outcomes))
    total = Counter(o.kind for part in outcomes.values() for o in part)
    bad = total["wrong"] + total["hang"] + total["crash"]
    return int(bad > 0 or total["foreign"] > 1e-3 * sum(total.values()))


if __name__ == "__main__":
    sys.exit(main())
