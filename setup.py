"""What setuptools cannot be told in pyproject.toml: the kernels, compiled by Cython when the package is built.

A kernel is a module of a package named `kernels` that imports cython. It is written in Python, so where no compiler is
found the package installs all the same and runs the source: the same answers, slowly, and one warning.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE = Path("src")
# No fused multiply-add: sums must have the same bits on every machine.
FLAGS = [] if os.name == "nt" else ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "annotation_typing": True,
    "infer_types": False,
}


def kernels():
    """Return one extension per kernel; a failure to compile it is no failure to install."""
    paths = sorted(path for path in SOURCE.rglob("kernels/*.py") if "import cython" in path.read_text("utf-8"))
    return [
        Extension(".".join(path.relative_to(SOURCE).with_suffix("").parts), [str(path)], extra_compile_args=FLAGS,
                  optional=True)
        for path in paths
    ]  # fmt: skip


setup(ext_modules=cythonize(kernels(), compiler_directives=DIRECTIVES, build_dir="build/kernels"))
