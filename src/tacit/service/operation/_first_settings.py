"""The first file of settings: written when a service starts for the first time, with words for its reader."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Final

from tacit.errors import TacitError

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS_FILE: Final = "service.toml"

_TEXT = """\
# The settings of a Tacit service. `tacit serve check` examines them; a change counts from the next start.

# Where the service keeps its files; "." is the folder of this file.
folder = "."

# What the pages call this service.
name = "Tacit"

# The sources that curators may choose by name. Only this file says where they are. List yours here.
[sources]
visits = "example/visits.parquet"   # invented: 12,700 visits of 6,000 patients who do not exist
# stays = "/data/stays.csv"         # a file: Parquet or CSV
# claims = { table = "claims", engine = "postgresql://reader@db/hospital" }   # a table on a server

# More settings; each shows its default. They belong above [sources].
# address = "127.0.0.1"     # another address needs a certificate, or behind_proxy = true
# port = 8340
# workers = 1
# certificate = "/etc/tacit/service.pem"
# private_key = "/etc/tacit/service-key.pem"
# behind_proxy = false      # true if a proxy on this machine ends TLS
# hosts = "tacit.example.org"
# ledger = "postgresql://tacit@db/tacit"      # instead of the file service.ledger
# database = "postgresql://tacit@db/tacit"    # instead of the file service.db
# witness = "/mnt/elsewhere/service.witness"  # the end of the ledger's log; keep it on another disk
# tick = "1/2"              # seconds between two moments at which answers leave
# lag = 4                   # after how many of these moments an answer leaves
# work = 800                # estimated work of a dataset at a time; less for very large tables
# metrics = 0               # a port of this machine for Prometheus, such as 8341
"""


def write_first_settings(folder: Path) -> Path:
    """Write the settings of a new service and an example to protect; return the file. Replaces nothing."""
    from tacit.tables import example_visits

    file = folder / SETTINGS_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        example = folder / "example"
        example.mkdir(exist_ok=True)
        if not (example / "visits.parquet").exists():
            shutil.copyfile(example_visits(), example / "visits.parquet")
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(_TEXT)
    except FileExistsError:
        return file
    except OSError as error:
        raise TacitError(
            "cannot-write",
            f"the service cannot write to the folder {folder}: {error.strerror}",
            fix="--folder FOLDER, a folder that you may write",
        ) from None
    return file
