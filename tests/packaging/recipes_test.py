#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes for Conan and vcpkg and the Dockerfile name what the build has: its options, dependencies, presets and files. Runs
the port's steps for the headers with stand-ins for vcpkg's functions, and finds the package that they make.

usage: recipes_test.py SOURCE
"""
import ast
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# A dependency in find_package(), Conan and vcpkg.
NAMES = {"nlohmann_json": ("nlohmann_json", "nlohmann-json"), "Eigen3": ("eigen", "eigen3"),
         "LibArchive": ("libarchive", "libarchive"), "OpenSSL": ("openssl", "openssl"), "SQLite3": ("sqlite3", "sqlite3"),
         "ZLIB": ("zlib", "zlib"), "CLI11": ("cli11", "cli11")}
# What only tests, the documentation and the Python package read.
NOT_BUILT = {"build", "python", "tests", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}
wrong = []


def check(truth, text):
    if not truth:
        wrong.append(text)


def check_options(recipe, text, cmake):
    known = set(re.findall(r"(?:option|set)\((GPUSCHED_\w+)", cmake))
    used = set(re.findall(r"GPUSCHED_(?:BUILD|WITH|UNITY)\w+", text))
    check(used, f"{recipe} sets no option")
    for option in sorted(used - known):
        check(False, f"{recipe}: CMakeLists.txt has no option {option}")
    optional = {name for name in known if name.startswith("GPUSCHED_WITH_")}
    for option in sorted(optional - used):
        check(False, f"{recipe} leaves {option} to what the machine happens to have")


def check_dependencies(source, conan, port):
    finds = (source / "cmake/GpuschedDependencies.cmake").read_text() + (source / "src/CMakeLists.txt").read_text()
    needed = set(re.findall(r"^find_package\((\w+)", finds, re.M)) - {"Threads"}
    check(needed == set(NAMES), f"the library and the program need {sorted(needed)}, this test knows {sorted(NAMES)}")
    by_conan = set(re.findall(r'self\.requires\("(\w+)/', conan))
    check(by_conan == {NAMES[name][0] for name in needed}, f"conanfile.py requires {sorted(by_conan)}")
    by_port = {name if isinstance(name, str) else name["name"] for name in port["features"]["sim"]["dependencies"]}
    check(by_port == {NAMES[name][1] for name in needed}, f"vcpkg.json depends on {sorted(by_port)}")
    found = set(re.findall(r"find_dependency\((\w+)", (source / "cmake/gpuschedConfig.cmake.in").read_text()))
    check(found - {"Threads"} == needed - {"CLI11"}, f"gpuschedConfig.cmake.in finds {sorted(found)}")


def check_sources(source, conan):
    tree = ast.parse(conan)
    sources = next(ast.literal_eval(node.value) for node in tree.body
                   if isinstance(node, ast.Assign) and node.targets[0].id == "SOURCES")
    for pattern in sources:
        check((source / pattern.removesuffix("/*")).exists(), f"conanfile.py exports {pattern}, which does not exist")
    for file in sorted(set(re.findall(r"\$\{PROJECT_SOURCE_DIR\}/([\w.]+)", "".join(
            path.read_text() for folder in ("cmake", "cuda", "docs", "experiments", "src", "traces")
            for path in [*(source / folder).rglob("*.cmake"), *(source / folder).rglob("CMakeLists.txt")])))):
        check(file in NOT_BUILT or any(pattern.removesuffix("/*") == file for pattern in sources),
              f"conanfile.py does not export {file}, which the build reads")


def check_dockerfile(source):
    text = (source / "Dockerfile").read_text()
    presets = json.loads((source / "CMakePresets.json").read_text())
    for preset in re.findall(r"cmake --workflow --preset (\w+)", text) or ["none at all"]:
        check(preset in {entry["name"] for entry in presets["workflowPresets"]}, f"Dockerfile: no preset {preset}")
    for file in re.findall(r"^COPY (?!--)(\S+) ", text, re.M):
        check((source / file).exists(), f"Dockerfile: no file {file}")
    check(set(re.findall(r"^FROM (\S+)", text, re.M)) == {"debian:bookworm-slim"}, "Dockerfile: another base")
    users = re.findall(r"^USER (\S+)", text, re.M)
    check(users and users[-1] not in ("root", "0"), "Dockerfile: the program runs as root")


def run_port(source, folder):
    packages = folder / "packages"
    command = ["cmake", f"-DCURRENT_PORT_DIR={source}/packaging/vcpkg/ports/gpusched", f"-DCURRENT_PACKAGES_DIR={packages}",
               f"-DBUILD_DIR={folder}/build", "-P", str(source / "tests/packaging/vcpkg_stand_ins.cmake")]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, f"the port fails: {done.stdout[-2000:]}")
    if done.returncode:
        return
    # What vcpkg refuses: other folders than these, and no copyright.
    check({path.name for path in packages.iterdir()} == {"include", "share"}, f"the port leaves {list(packages.iterdir())}")
    check((packages / "share/gpusched/copyright").read_text() == (source / "LICENSE").read_text(), "no copyright")
    check((packages / "share/gpusched/usage").exists(), "no usage")
    consumer = subprocess.run(["cmake", "-S", source / "examples/policy", "-B", folder / "policy", "-G", "Ninja",
                               f"-DCMAKE_PREFIX_PATH={packages}"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    if consumer.returncode:
        check(False, f"a consumer does not find what the port makes: {consumer.stdout[-2000:]}")
        return
    check(f"-I{packages}/include" in (folder / "policy/build.ninja").read_text().replace("-isystem ", "-I"),
          "a consumer has other headers than the port's")


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    cmake = (source / "CMakeLists.txt").read_text()
    conan = (source / "packaging/conan/conanfile.py").read_text()
    ast.parse((source / "packaging/conan/test_package/conanfile.py").read_text())
    port = json.loads((source / "packaging/vcpkg/ports/gpusched/vcpkg.json").read_text())
    check_options("conanfile.py", conan, cmake)
    check_options("portfile.cmake", (source / "packaging/vcpkg/ports/gpusched/portfile.cmake").read_text(), cmake)
    check_dependencies(source, conan, port)
    check_sources(source, conan)
    check_dockerfile(source)
    with tempfile.TemporaryDirectory() as scratch:
        run_port(source, pathlib.Path(scratch))
    print("\n".join(wrong) or "the recipes agree with the build")
    sys.exit(1 if wrong else 0)


main()
