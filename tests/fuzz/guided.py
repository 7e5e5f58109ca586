"""One target under atheris, which keeps inputs that reach new lines: ``python -m tests.fuzz.guided NAME DIR``.

Begins with 300 inputs of the campaign; DIR keeps what is found. More arguments go to libFuzzer, such as
``-max_total_time=600``. A fault ends it, and its input is in a file whose name libFuzzer prints. atheris is
installed by hand (``pip install atheris``).
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path


def main() -> None:
    """Fuzz until libFuzzer's limits or a fault."""
    import atheris

    with atheris.instrument_imports(include=["paddlelike"]):
        from tests.fuzz.campaign import Found, make, run_one, set_up_target
        from tests.fuzz.guard import watch_calls
        from tests.fuzz.loaders import names_a_file
        from tests.fuzz.targets import TARGETS
        from tests.helpers.fresh import fresh_programs

    name, corpus, *rest = sys.argv[1:]
    target = TARGETS[name]
    if name in ("tree", "staging"):
        sys.exit("the names in its inputs are believed")
    Path(corpus).mkdir(parents=True, exist_ok=True)
    for number in range(300):
        (Path(corpus) / f"made-{number}").write_bytes(make(target, 0, number))
    with tempfile.TemporaryDirectory() as home, watch_calls(), fresh_programs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guard = set_up_target(target, Path(home) / "root")

        def one(data: bytes) -> None:
            if target.clean is not None and not names_a_file(data):
                return
            found = run_one(target, guard, data)
            if isinstance(found, Found):
                raise RuntimeError(f"{found.what} at {found.where}")

        atheris.Setup([sys.argv[0], corpus, "-timeout=60", "-rss_limit_mb=4096", *rest], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
