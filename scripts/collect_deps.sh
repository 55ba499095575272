#!/usr/bin/env bash
# Copies the libraries and headers that gpusched and its tests need from a Debian machine into FOLDER, about 30 MiB, so that
# gpusched can be built on a machine without them and without network access:
#   scripts/collect_deps.sh FOLDER                 on the Debian machine
#   GPUSCHED_DEPS=FOLDER scripts/gpu_check.sh      on the other one
set -euo pipefail

if [ $# -ne 1 ]; then
  sed -n 's/^#  //p' "$0" >&2
  exit 2
fi
folder=$1
triplet=x86_64-linux-gnu
include=$folder/include
library=$folder/lib
mkdir -p "$include" "$library/cmake"

copy() { cp -rL --no-preserve=ownership "$@"; }

for headers in CLI nlohmann eigen3 gtest gmock rapidcheck rapidcheck.h openssl archive.h archive_entry.h sqlite3.h zlib.h zconf.h; do
  copy "/usr/include/$headers" "$include/"
done
[ ! -d "/usr/include/$triplet/openssl" ] || copy "/usr/include/$triplet/openssl/." "$include/openssl/"
rm -rf "$include/eigen3/unsupported"

for name in gtest gtest_main gmock gmock_main rapidcheck crypto sqlite3; do copy "/usr/lib/$triplet/lib$name.a" "$library/"; done
# gpusched uses libarchive only to read tar and single compressed files: so the static libraries of libarchive and of the
# compressions suffice, joined by a linker script. Two of these exist in Debian as shared libraries only.
copy "/usr/lib/$triplet/libarchive.a" "$library/libarchive_static.a"
for name in z bz2 lzma; do copy "/usr/lib/$triplet/lib$name.a" "$library/"; done
for name in zstd lz4; do copy "/usr/lib/$triplet/lib$name.so.1" "$library/"; done
cat >"$library/libarchive.so" <<'SCRIPT'
GROUP ( -l:libarchive_static.a -l:libz.a -l:libbz2.a -l:liblzma.a -l:libzstd.so.1 -l:liblz4.so.1 )
SCRIPT

# CMake's own find modules find libarchive, OpenSSL and GoogleTest; the others get a package file for this folder.
package() { # NAME VERSION TARGET INCLUDE_FOLDER [LIBRARY...]
  local at=$library/cmake/$1 links=()
  mkdir -p "$at"
  for linked in "${@:5}"; do links+=("\${root}/lib/lib$linked.a"); done
  cat >"$at/$1Config.cmake" <<CONFIG
get_filename_component(root "\${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET $3)
  add_library($3 INTERFACE IMPORTED)
  set_target_properties($3 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "\${root}/$4"
    INTERFACE_LINK_LIBRARIES "${links[*]:-}")
endif()
CONFIG
  cat >"$at/$1ConfigVersion.cmake" <<VERSION
set(PACKAGE_VERSION $2)
set(PACKAGE_VERSION_COMPATIBLE TRUE)
VERSION
}
version_of() { dpkg-query -W -f='${Version}' "$1" | grep -oE '^[0-9]+(\.[0-9]+)+'; }
package CLI11 "$(version_of libcli11-dev)" CLI11::CLI11 include
package nlohmann_json "$(version_of nlohmann-json3-dev)" nlohmann_json::nlohmann_json include
package Eigen3 "$(version_of libeigen3-dev)" Eigen3::Eigen include/eigen3
package rapidcheck 0.0 rapidcheck include rapidcheck
# rapidcheck's support for GoogleTest is a header-only library.
cat >>"$library/cmake/rapidcheck/rapidcheckConfig.cmake" <<'CONFIG'
if(NOT TARGET rapidcheck_gtest)
  add_library(rapidcheck_gtest INTERFACE IMPORTED)
endif()
CONFIG
package GTest "$(version_of libgtest-dev)" GTest::gtest include gtest
cat >>"$library/cmake/GTest/GTestConfig.cmake" <<'CONFIG'
foreach(name gmock gtest_main gmock_main)
  if(NOT TARGET GTest::${name})
    add_library(GTest::${name} INTERFACE IMPORTED)
    set_target_properties(GTest::${name} PROPERTIES INTERFACE_LINK_LIBRARIES "${root}/lib/lib${name}.a;GTest::gtest")
  endif()
endforeach()
CONFIG

size=$(du -sm "$folder" | cut -f1)
echo "$folder: $size MiB"
[ "$size" -le 64 ] || {
  echo "more than the 64 MiB that such machines take" >&2
  exit 1
}
