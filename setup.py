"""Builds the compiled kernels. Everything else about the package is in pyproject.toml."""

import re
import sys
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, ExecError, PlatformError
from setuptools.modified import newer_group

SHARED = "priory.core._kernel._shared"  # Cython's code for memory views, compiled once instead of in every kernel

OPTIONS = {
    "priory.core._kernel.exact": ["-O3"],
    "priory.core._kernel.gamma": ["-O3", "-fno-math-errno"],
    "priory.core._kernel.tables": ["-O3", "-fno-math-errno", "-fno-trapping-math"],
    "priory.core._kernel.sparse": ["-O3", "-fno-math-errno", "-fno-trapping-math"],
    "priory.core._kernel.products": ["-O3"],
    "priory.core._kernel.rows": ["-O3", "-fno-math-errno"],
    "priory.core._kernel.text": ["-O3"],
    # one multiplication and one addition, never both at once: the same bits on every machine
    "priory.core._kernel.trees": ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"],
}
INCLUDED = ["setup.py", *glob("src/priory/core/_kernel/*.pxi"), *glob("src/priory/core/_kernel/*.h")]
NEEDS_COMPILER = (
    "priory is compiled when it is installed from source, and that failed: install a C compiler and Python's headers "
    "(Debian and Ubuntu: apt install build-essential python3-dev; macOS: xcode-select --install), "
    "or install a wheel, which needs neither."
)


class BuildKernels(build_ext):
    """Compiles an extension with the options its compiler knows, and says in one sentence what a failure means."""

    def initialize_options(self):
        super().initialize_options()
        self.shared_utility_qualified_name = SHARED

    def build_extension(self, extension):
        compiled = Path("src", self.get_ext_filename(extension.name))
        sources = [source for source in extension.sources if source.endswith(".pyx")]
        if self.editable_mode and not newer_group([*sources, *extension.depends], str(compiled)):
            target = Path(self.get_ext_fullpath(extension.name))  # `make test` after `make demo`
            self.mkpath(str(target.parent))
            self.copy_file(str(compiled), str(target))
            return
        if self.compiler.compiler_type == "unix":
            extension.extra_compile_args = [*OPTIONS.get(extension.name, ["-O2"]), "-g0"]
        if sys.platform == "linux":
            extension.extra_link_args = ["-Wl,-s"]  # no symbols: a quarter of the size
        try:
            super().build_extension(extension)
        except (CCompilerError, ExecError, PlatformError):  # what the compiler printed stands above the sentence
            raise CompileError(NEEDS_COMPILER) from None


def write_description():
    """README.md for PyPI, where a path of the repository leads nowhere: such links become words, the picture goes."""
    text = re.sub(r"!\[[^\]]*\]\((?!https:)[^)]*\)\n\n", "", Path("README.md").read_text("utf-8"))
    return re.sub(r"\[([^\]]+)\]\((?!https:|#)[^)]*\)", r"\1", text)


def declare_extension(name, suffix):
    extension = Extension(name, [f"src/{name.replace('.', '/')}{suffix}"], depends=INCLUDED)
    extension.cython_directives = {"auto_pickle": False, "freethreading_compatible": True}
    return extension


setup(
    long_description=write_description(),
    long_description_content_type="text/markdown",
    cmdclass={"build_ext": BuildKernels},
    ext_modules=[declare_extension(SHARED, ".c"), *(declare_extension(name, ".pyx") for name in OPTIONS)],
)
