# SPDX-License-Identifier: Apache-2.0
"""gpusched for Conan 2: the header library, and with sim=True gpusched::sim. Made from the tree that this file is in."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

SOURCES = ["CMakeLists.txt", "LICENSE", "CHANGELOG.md", "CITATION.cff", "cmake/*", "cuda/*", "docs/*", "examples/*", "experiments/*",
           "include/*", "models/*", "profiles/*", "scripts/*", "src/*", "traces/*"]


class Gpusched(ConanFile):
    name = "gpusched"
    description = "Discrete-event simulator and research library for GPU-cluster scheduling"
    license = "Apache-2.0"
    topics = ("scheduling", "simulation", "gpu-cluster", "reinforcement-learning")
    package_type = "static-library"
    settings = "os", "compiler", "build_type", "arch"
    # sim: build gpusched::sim, with policies by name, readers of traces and reports. system_libs: take what it is linked to
    # from the system (Debian: scripts/packages_build.txt) instead of from Conan.
    options = {"sim": [True, False], "system_libs": [True, False]}
    default_options = {"sim": False, "system_libs": False}

    def _root(self):
        return os.path.normpath(os.path.join(self.recipe_folder, "..", ".."))

    def set_version(self):
        text = load(self, os.path.join(self._root(), "CMakeLists.txt"))
        self.version = re.search(r"project\(gpusched VERSION (\S+)", text).group(1)

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, src=self._root(), dst=self.export_sources_folder)

    def configure(self):
        if not self.options.sim:
            self.package_type = "header-library"
            del self.options.system_libs

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.sim and not self.options.system_libs:
            self.requires("nlohmann_json/3.11.3", transitive_headers=True)
            self.requires("eigen/3.4.0")
            self.requires("libarchive/3.7.6")
            self.requires("openssl/[>=3.0 <4]")
            self.requires("sqlite3/[>=3.45 <4]")
            self.requires("zlib/[>=1.2.11 <2]")
            self.requires("cli11/2.4.2", visible=False)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        if not self.info.options.sim:
            self.info.clear()  # headers are the same everywhere

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({
            "GPUSCHED_BUILD_CLI": bool(self.options.sim), "GPUSCHED_BUILD_TESTS": False, "GPUSCHED_BUILD_BENCH": False,
            "GPUSCHED_BUILD_PYTHON": "OFF", "GPUSCHED_WITH_TORCH": "OFF", "GPUSCHED_WITH_CUDA": "OFF",
            "GPUSCHED_WITH_CLP": "OFF", "GPUSCHED_WITH_PAGMO": "OFF", "GPUSCHED_WITH_VEGA": "OFF",
            "GPUSCHED_WITH_SPHINX": "OFF", "GPUSCHED_UNITY_BUILD": True})
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        if self.options.sim:
            cmake.build(target="gpusched_sim")

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        CMake(self).install(component="development")

    def package_info(self):
        # gpusched's own configuration defines the targets; it is found by its folder.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "gpusched")]
        self.cpp_info.bindirs = []
        if self.options.sim:
            self.cpp_info.libs = ["gpusched"]
            self.cpp_info.includedirs = ["include", os.path.join("include", "gpusched-sim")]
            self.cpp_info.system_libs = ["dl", "pthread"]
            if self.options.system_libs:
                self.cpp_info.system_libs += ["archive", "crypto", "sqlite3", "z"]
        else:
            self.cpp_info.libdirs = []
