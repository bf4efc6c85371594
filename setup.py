"""What setuptools cannot be told in pyproject.toml: the kernels, compiled by Cython when the package is built.

A kernel is a module of a package named `kernels` that imports cython. It is written in Python, so where no compiler is
found the package installs all the same and runs the source: the same answers, slowly, and one warning
(docs/decisions/0120-kernels-compiled-at-build-time.md).
"""

import os
import platform
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE = Path("src")
# No fused multiply-add: sums must have the same bits on every machine. The two after it change no bit, but let a loop
# with a root or a comparison of floats be vectorised. Symbols for a debugger (-g, as many a Python was built) would be
# three quarters of a wheel, and name the folder in which it was built.
FLAGS = [] if os.name == "nt" else ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-g0"]
# A wheel must run on every x86-64, which adds eight 16-bit integers at a time. Nearly all of them can add 16: this
# kernel is compiled for both, and `_balls/kernels/compiled.py` takes what the processor has.
WIDE = "onbmacf._balls.kernels.loops"
HAS_WIDE = os.name != "nt" and platform.machine() in ("x86_64", "AMD64")
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
    """Return one extension per kernel."""
    paths = sorted(path for path in SOURCE.rglob("kernels/*.py") if "import cython" in path.read_text("utf-8"))
    return [
        Extension(".".join(path.relative_to(SOURCE).with_suffix("").parts), [str(path)], extra_compile_args=FLAGS)
        for path in paths
    ]


def widened(extension):
    """Return the same kernel, compiled for AVX2 under another name."""
    name, source = extension.name + "_avx2", Path(extension.sources[0])
    short = extension.name.rpartition(".")[2]
    copy = source.with_name(f"{short}_avx2.c")
    text = source.read_text("utf-8").replace(f"PyInit_{short}", f"PyInit_{short}_avx2")
    if not copy.exists() or copy.read_text("utf-8") != text:  # a file that is not written is not compiled again
        copy.write_text(text, "utf-8")
    return Extension(name, [str(copy)], extra_compile_args=[*FLAGS, "-mavx2"])


extensions = cythonize(kernels(), compiler_directives=DIRECTIVES, build_dir="build/kernels")
if HAS_WIDE:
    extensions += [widened(extension) for extension in extensions if extension.name == WIDE]
for extension in extensions:
    extension.optional = True  # said to `Extension`, it would be lost in `cythonize`
setup(ext_modules=extensions)
