"""Take the pictures of a report's first screen for the README: 1280 and 390 pixels wide, light and dark.

    scripts/demo.sh && python scripts/picture_report.py demo-work

Needs Chromium (Debian: `apt-get install chromium`) and Pillow, which matplotlib brings. The page is that of
`sentcompress report`, unchanged; the pictures are lossless WebP.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZES = {"wide": (1280, 1180), "narrow": (390, 1180)}
# Chromium's numbers of the preferred colour schemes.
SCHEMES = {"dark": 0, "light": 1}
LARGEST = 150_000


def pictures(page: Path, folder: Path) -> Iterator[Path]:
    """Take the four pictures of a page; yields their paths."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"none of these is installed: {', '.join(BROWSERS)}")
    folder.mkdir(parents=True, exist_ok=True)
    for width, (across, down) in SIZES.items():
        for scheme, number in SCHEMES.items():
            target = folder / f"report-{width}-{scheme}.webp"
            with tempfile.TemporaryDirectory() as place:
                shot = Path(place) / "shot.png"
                options = [
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--hide-scrollbars",
                    f"--user-data-dir={place}/profile",
                    f"--blink-settings=preferredColorScheme={number}",
                    f"--window-size={across},{down}",
                    f"--screenshot={shot}",
                ]
                subprocess.run(
                    [browser, *options, page.resolve().as_uri()], check=True, capture_output=True, timeout=120
                )
                Image.open(shot).convert("RGB").save(target, lossless=True, method=6)
            yield target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="work directory with a report")
    parser.add_argument("--output", type=Path, default=PICTURES, help="folder of the pictures")
    given = parser.parse_args()
    for path in pictures(given.work / "report" / "report.html", given.output):
        size = path.stat().st_size
        print(f"{path}: {size:,} bytes")
        if size > LARGEST:
            raise SystemExit(f"{path} is larger than {LARGEST:,} bytes")


if __name__ == "__main__":
    main()
