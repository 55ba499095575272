#!/usr/bin/env bash
# The Python package as `pip install .` makes it where the program has been built: it links the library of that build.
# Usage: build_python.sh SOURCE BUILD WORK PYTHON
set -euo pipefail
source=$1 build=$2 work=$3 python=$4
"$python" -c 'import nanobind, numpy' || { echo "skipped: $python has no nanobind or no numpy"; exit 77; }

rm -rf "$work"
# As scikit-build-core calls it, but for the optimisation.
cmake -S "$source" -B "$work/build" -G Ninja -DSKBUILD=2 -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 \
  -DGPUSCHED_BUILD_PYTHON=ON -DGPUSCHED_BUILD_TESTS=OFF -DGPUSCHED_BUILD_BENCH=OFF -DGPUSCHED_UNITY_BUILD=ON \
  -DGPUSCHED_SIM_OF="$build" \
  -DPython_EXECUTABLE="$python" > "$work.log" || { cat "$work.log"; exit 1; }
cmake --build "$work/build" --target gpusched_python gpusched_python_stub > "$work.log" || { cat "$work.log"; exit 1; }
if find "$work/build" -path '*gpusched_sim.dir*' -name '*.o' | grep -q .; then
  echo "the library was compiled again"
  exit 1
fi
cmake --install "$work/build" --component python --prefix "$work/site" > "$work.log"
cp "$source"/python/src/gpusched_sim/*.py "$work/site/gpusched_sim"
PYTHONPATH="$work/site" "$python" -c '
import gpusched_sim as gs
runs = gs.replay("synthetic:philly", policies=["fifo", "srtf"])
assert gs.__file__.startswith("'"$work"'"), gs.__file__
assert runs["srtf"].metrics["avg_jct_s"] < runs["fifo"].metrics["avg_jct_s"]'

if cmake -S "$source" -B "$work/none" -G Ninja -DSKBUILD=2 -DGPUSCHED_BUILD_PYTHON=ON -DGPUSCHED_SIM_OF="$work/nothing" \
  -DPython_EXECUTABLE="$python" > "$work.log" 2>&1; then
  echo "a folder without a build was taken"
  exit 1
fi
grep -q "GPUSCHED_SIM_OF" "$work.log" || { cat "$work.log"; exit 1; }

# A checkout that was copied or moved with its builds: that of elsewhere is not taken, and the package can still be configured.
mkdir -p "$work/moved/build/release"
for entry in "$source"/*; do
  [ "$(basename "$entry")" = build ] || ln -s "$entry" "$work/moved/"
done
rm "$work/moved/CMakeLists.txt"
cp "$source/CMakeLists.txt" "$work/moved/"
cp "$build/CMakeCache.txt" "$build/build.ninja" "$work/moved/build/release/"
cmake -S "$work/moved" -B "$work/moved/build/wheel" -G Ninja -DSKBUILD=2 -DGPUSCHED_BUILD_PYTHON=ON -DGPUSCHED_WITH_TORCH=OFF \
  -DGPUSCHED_WITH_CUDA=OFF -DPython_EXECUTABLE="$python" > "$work.log" 2>&1 || { cat "$work.log"; exit 1; }
grep -q 'gpusched_sim.dir/' "$work/moved/build/wheel/build.ninja" || { echo "the build of another checkout was taken"; exit 1; }
