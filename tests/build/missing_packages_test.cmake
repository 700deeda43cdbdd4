# A package that is missing ends the configuration with one sentence, which names it and the script that installs it.
#   cmake -DROOT=<tree> -DSCRATCH=<folder> -DCC= -DCXX= -P missing_packages_test.cmake
cmake_minimum_required(VERSION 3.25)

# Configures without what `argument` takes away, which the sentence calls `name`.
function(check argument name)
  file(REMOVE_RECURSE ${SCRATCH})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${ROOT} -B ${SCRATCH} -G Ninja -DHSTUJIT_BUILD_TESTS=OFF ${argument}
                          -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX}
                  RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(sentence "hstu-jit needs ${name}, which was not found: tools/install-deps.sh installs what the build needs ")
  string(FIND "${output}" "${sentence}" place)
  if(code EQUAL 0 OR place EQUAL -1)
    message(SEND_ERROR "with ${argument} the configuration ends with ${code}, without \"${sentence}\":\n${output}")
  endif()
endfunction()

check(-DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON "MLIR and LLVM 22.1")
check(-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON "fmt")
