# Where built libraries and programs look for libraries: never in the current folder, where anybody may have put one. That
# is what an empty entry means, and one that begins with neither "/" nor "$ORIGIN".
#   cmake -DBUILD=<folder> -DREADELF= -P runpaths_test.cmake
file(GLOB files ${BUILD}/lib/*.so* ${BUILD}/bin/* ${BUILD}/libexec/hstujit/*)
set(count 0)
foreach(file IN LISTS files)
  execute_process(COMMAND ${READELF} -d ${file} OUTPUT_VARIABLE dynamic ERROR_QUIET)
  if(NOT dynamic MATCHES "\\((RPATH|RUNPATH)\\)[^\n]*\\[([^]]*)\\]")
    continue()
  endif()
  set(runpath "${CMAKE_MATCH_2}")
  math(EXPR count "${count} + 1")
  if(NOT ":${runpath}" MATCHES "^(:(/|\\$ORIGIN)[^:]*)+$")
    message(SEND_ERROR "${file} looks for libraries in [${runpath}]; allowed: entries that begin with / or $ORIGIN")
  endif()
endforeach()
if(count EQUAL 0)
  message(SEND_ERROR "no file of ${BUILD} says where it looks for libraries: is it a folder of a build?")
endif()
