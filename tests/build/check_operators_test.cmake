# operators.cmake lets whole families and operators pass and names what a half-made one lacks.
#   cmake -DMODULE=<operators.cmake> -DFOLDER=<scratch> -P check_operators_test.cmake
set(whole compiler/spec/operators/my_op/spec.cpp templates/my_family/sm90/kernel.cuh templates/my_family/sm90/kernel.cpp
    compiler/host/families/my_family/loops.cpp)
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
check_without(templates/my_family/sm90/kernel.cuh "family \"my_family\" has no template")
check_without(templates/my_family/sm90/kernel.cpp "family \"my_family\" has no template")
check_without(compiler/host/families/my_family/loops.cpp "compiler/host/families/my_family/ has no .cpp")
check(without_a_spec "compiler/ir/operators/my_op.cpp is named after no operator: compiler/spec/operators/my_op/ is missing" ${shared}
      compiler/ir/operators/my_op.cpp)
check(misspelt_tests "tests/operators/my_opp/ is named after no operator" ${whole} ${shared} tests/operators/my_opp/cases.json)
check(misspelt_regions "compiler/ir/operators/my_opp.cpp is named after no operator" ${whole} ${shared} compiler/ir/operators/my_opp.cpp)
