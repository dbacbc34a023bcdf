"""Run every benchmark script, one after the other: `make bench`, or `make bench ONLY="noise ledger"`."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
HELPERS = {"run", "peers", "measured_engines"}


def main() -> None:
    wanted = sys.argv[1:] or sorted(p.stem for p in HERE.glob("*.py") if p.stem not in HELPERS)
    failed = []
    for subject in wanted:
        print(f"\n===== {subject} =====", flush=True)
        if subprocess.run([sys.executable, HERE / f"{subject}.py"], check=False).returncode:
            failed.append(subject)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
