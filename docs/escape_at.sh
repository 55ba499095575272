#!/bin/sh
# "policy@source" is a name here; to Doxygen an @ starts a command unless a backslash stands before it.
exec sed "s/@/\\\\@/g" "$1"
