#!/bin/sh
# Prints a file as Doxygen 1.9.4 can read it. "policy@source" is a name here, but outside of code an @ starts a command
# there. In Markdown Doxygen resolves neither links to headings nor links to files that are no pages of it (docs/ is in the site): only their text
# stays.
case $1 in
  *.md) exec perl -0777 -pe '
          s/(?<!!)\[([^]]*)\]\((#|docs\/|traces\/|CHANGELOG\.md|\.\.\/(experiments|traces)\/)[^)]*\)/$1/g;
          s/(```.*?```|`[^`]*`|^    [^\n]*)|\@/defined $1 ? $1 : "\\\@"/gmse' "$1" ;;
  *) exec perl -pe 'm{//} and s/(`[^`]*`)|\@/defined $1 ? $1 : "\\\@"/ge' "$1" ;;
esac
