# The components that wheels are made of.
#   cmake -DBUILD=<build folder> -DPREFIX=<folder> -P install_prefix.cmake
file(REMOVE_RECURSE ${PREFIX})
foreach(component IN ITEMS runtime operations compiler host torch)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --strip --prefix ${PREFIX} --component ${component}
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "installing ${component} ended with ${code}:\n${output}")
  endif()
endforeach()
