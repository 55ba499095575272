# Run by CPack between installing into its own folder and packing it: gives each component's tree the files that Debian's
# policy asks for (chapter 12: manual pages, copyright, changelog).
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
find_program(GZIP gzip REQUIRED)

function(compress file)
  execute_process(COMMAND ${GZIP} -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The date of the release at noon, as Debian writes dates.
function(write_changelog file package)
  execute_process(COMMAND date -u -R -d "${CPACK_GPUSCHED_RELEASED} 12:00" OUTPUT_VARIABLE date
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${file} "${package} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
    "  * Version ${CPACK_PACKAGE_VERSION}; CHANGELOG.md of the package gpusched says what changed.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress(${file})
endfunction()

function(write_copyright file)
  file(WRITE ${file} "gpusched: Copyright The gpusched authors\n\n"
    "Licensed under the Apache License, Version 2.0. On Debian systems its text is in\n"
    "/usr/share/common-licenses/Apache-2.0.\n")
  if(CPACK_GPUSCHED_LICENCES)
    file(APPEND ${file} "\nParts of the following are compiled in.\n")
  endif()
  foreach(licence IN LISTS CPACK_GPUSCHED_LICENCES)
    if(NOT EXISTS ${licence})  # not built from Debian's packages
      continue()
    endif()
    cmake_path(GET licence PARENT_PATH folder)
    cmake_path(GET folder FILENAME package)
    file(READ ${licence} text)
    file(APPEND ${file} "\n----- ${package} -----\n\n${text}")
  endforeach()
endfunction()

set(program ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/program/usr)
set(development ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/development/usr)

if(EXISTS ${program})
  set(documents ${program}/share/doc/gpusched)
  file(REMOVE ${documents}/LICENSE)  # the licence is in every Debian
  write_changelog(${documents}/changelog gpusched)
  write_copyright(${documents}/copyright)
  compress(${program}/share/man/man1/gpusched.1)
  foreach(name gpusched-train gpusched-search gpusched-calibrate)  # the page of gpusched describes these commands
    file(CREATE_LINK gpusched.1.gz ${program}/share/man/man1/${name}.1.gz SYMBOLIC)
  endforeach()
  file(MAKE_DIRECTORY ${program}/share/zsh/vendor-completions)  # where Debian's zsh looks
  file(RENAME ${program}/share/zsh/site-functions/_gpusched ${program}/share/zsh/vendor-completions/_gpusched)
  file(REMOVE_RECURSE ${program}/share/zsh/site-functions)
endif()
if(EXISTS ${development})
  set(documents ${development}/share/doc/libgpusched-dev)
  file(MAKE_DIRECTORY ${documents})
  file(RENAME ${development}/share/doc/gpusched/examples ${documents}/examples)
  file(REMOVE_RECURSE ${development}/share/doc/gpusched)
  write_changelog(${documents}/changelog libgpusched-dev)
  write_copyright(${documents}/copyright)
endif()
