#!/usr/bin/env bash
# Installs the Debian packages listed in the given files, if any is missing. Asks for nothing when nothing is missing.
#   scripts/install_packages.sh scripts/packages_build.txt [...]
set -euo pipefail

if ! command -v dpkg-query >/dev/null; then
  echo "Not a Debian system: install the packages listed in $* by your own means." >&2
  exit 0
fi

missing=()
for package in $(grep -hv '^#' "$@"); do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing packages, and no root to install them. Run as root:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
