"""The test cluster's code lies in `e2e/`, beside folders that must not be importable here (`kernels`, `operator`): it is imported
once, with the checkout on the path for that moment only.
"""

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = ("base_images", "images", "keyed", "oci", "processes", "settings")

sys.path.append(str(ROOT))
try:
    for name in MODULES:
        importlib.import_module(f"e2e.cluster.{name}")
finally:
    sys.path.remove(str(ROOT))
