#!/bin/sh
# Prints a file as Doxygen 1.9.4 can read it. "policy@source" is a name here, but an @ starts a command there. In
# Markdown it resolves neither links to headings nor links to files that are no pages: only their text stays.
case $1 in
  *.md) exec sed -z -E -e 's/@/\\@/g' -e 's/\[([^]]*)\]\((#|\.\.\/(experiments|traces)\/)[^)]*\)/\1/g' "$1" ;;
  *) exec sed -e 's/@/\\@/g' "$1" ;;
esac
