# operators.cmake lets whole operators pass and names what a half-made one lacks.
#   cmake -DMODULE=<operators.cmake> -DFOLDER=<scratch> -P check_operators_test.cmake
set(whole compiler/spec/my_op/spec.cpp templates/my_op/sm90.cuh templates/my_op/sm90.cpp compiler/host/operators/my_op.cpp)
set(shared compiler/spec/config.cpp templates/common/math.cuh templates/embedded.h compiler/ir/build.cpp)

# Runs the check over a tree of empty files; `expected` is part of its message, or empty when it must pass.
function(check name expected)
  file(REMOVE_RECURSE ${FOLDER})
  foreach(file IN LISTS ARGN)
    file(WRITE ${FOLDER}/${file} "")
  endforeach()
  execute_process(COMMAND ${CMAKE_COMMAND} -DMODULE=${MODULE} -DROOT=${FOLDER} -P ${CMAKE_CURRENT_LIST_DIR}/check_operators.cmake
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(expected STREQUAL "" AND NOT result EQUAL 0)
    message(SEND_ERROR "${name}: should pass, but: ${output}")
  elseif(NOT expected STREQUAL "" AND (result EQUAL 0 OR NOT output MATCHES "${expected}"))
    message(SEND_ERROR "${name}: should fail with \"${expected}\", but: ${output}")
  endif()
endfunction()

# `whole` without one file.
function(check_without file expected)
  set(rest ${whole} ${shared})
  list(REMOVE_ITEM rest ${file})
  check("without ${file}" "${expected}" ${rest})
endfunction()

check(whole "" ${whole} ${shared})
check(with_regions "" ${whole} ${shared} compiler/ir/operators/my_op.cpp)
check_without(templates/my_op/sm90.cuh "operator \"my_op\" .* has no template")
check_without(templates/my_op/sm90.cpp "operator \"my_op\" .* has no template")
check_without(compiler/host/operators/my_op.cpp "compiler/host/operators/my_op.cpp is missing")
check_without(compiler/spec/my_op/spec.cpp "templates/my_op is named after no operator: compiler/spec/my_op/ is missing")
check(misspelt_regions "compiler/ir/operators/my_opp.cpp is named after no operator" ${whole} ${shared} compiler/ir/operators/my_opp.cpp)
