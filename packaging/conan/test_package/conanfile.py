# SPDX-License-Identifier: Apache-2.0
"""Builds the examples against the package as a consumer would, and runs them."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import cmake_layout
from conan.tools.files import load


class TestGpusched(ConanFile):
    settings = "os", "compiler", "build_type", "arch"
    generators = "CMakeToolchain", "CMakeDeps"
    test_type = "explicit"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def _examples(self):
        return os.path.normpath(os.path.join(self.recipe_folder, "..", "..", "..", "examples"))

    def _names(self):
        has_sim = self.dependencies["gpusched"].options.get_safe("sim") == True  # noqa: E712, an option is no bool
        return ["embed", "policy"] + (["simulate"] if has_sim else [])

    def build(self):
        for name in self._names():
            self.output.info(f"examples/{name}")
            build = os.path.join(self.build_folder, name)
            toolchain = os.path.join(self.generators_folder, "conan_toolchain.cmake")
            self.run(f'cmake -S "{self._examples()}/{name}" -B "{build}" -DCMAKE_TOOLCHAIN_FILE="{toolchain}" '
                     f"-DCMAKE_BUILD_TYPE={self.settings.build_type}")
            self.run(f'cmake --build "{build}"')

    def test(self):
        if not can_run(self):
            return
        folder, examples = self.build_folder, self._examples()
        self.run(f'"{folder}/embed/embed" >embed.txt')
        expected = load(self, os.path.join(examples, "embed", "expected_output.txt"))
        assert load(self, "embed.txt") == expected, "examples/embed prints something else"
        assert os.path.exists(os.path.join(folder, "policy", "mine.so"))
        if "simulate" in self._names():
            jobs = os.path.join(examples, "clusters", "jobs.csv")
            self.run(f'"{folder}/simulate/simulate" "{jobs}" 2x2 fifo sjf "{folder}/policy/mine.so"')
