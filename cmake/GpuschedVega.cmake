# Looks for Vega (Debian's libjs-vega) as GPUSCHED_WITH_VEGA says and sets GPUSCHED_VEGA_FOUND and gpusched_vega_modules, in
# the order in which they need each other; the program's reports draw by them. Only what reports use is taken.
set(GPUSCHED_VEGA_FOUND FALSE)
set(gpusched_vega_modules util time format loader statistics dataflow canvas scale scenegraph expression event-selector
  selection functions runtime parser view encode transforms view-transforms)
set(gpusched_vega_licence /usr/share/doc/libjs-vega/copyright)
if(NOT GPUSCHED_WITH_VEGA STREQUAL OFF)
  find_path(GPUSCHED_VEGA_FOLDER vega-view.min.js PATHS /usr/share/javascript/vega)
  set(GPUSCHED_VEGA_FOUND TRUE)
  foreach(module IN LISTS gpusched_vega_modules)
    if(NOT EXISTS "${GPUSCHED_VEGA_FOLDER}/vega-${module}.min.js")
      set(GPUSCHED_VEGA_FOUND FALSE)
    endif()
  endforeach()
  if(NOT EXISTS ${gpusched_vega_licence})  # it must go with the code
    set(GPUSCHED_VEGA_FOUND FALSE)
  endif()
  if(NOT GPUSCHED_VEGA_FOUND AND GPUSCHED_WITH_VEGA STREQUAL ON)
    message(FATAL_ERROR "Vega was not found; install libjs-vega")
  endif()
endif()
message(STATUS "Reports (Vega): ${GPUSCHED_VEGA_FOUND}")
