# check_includes.cmake finds a wrong include and lets a right one pass.
#   cmake -DSCRIPT=<check_includes.cmake> -DFOLDER=<scratch> -P check_includes_test.cmake
set(dependencies ${FOLDER}/deps.cmake)
file(WRITE ${dependencies} "set(HSTUJIT_DEPS_spec support)\nset(HSTUJIT_DEPS_plan support spec skeletons)\nset(HSTUJIT_DEPS_runtime support)\nset(HSTUJIT_DEPS_operations support runtime)\n")

# Runs the script over one file with one include; `expected` is part of its message, or empty when it must pass.
function(check name path include expected)
  file(REMOVE_RECURSE ${FOLDER}/tree)
  file(WRITE ${FOLDER}/tree/${path} "#pragma once\n#include \"${include}\"\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${FOLDER}/tree -DDEPS=${dependencies} -P ${SCRIPT}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(expected STREQUAL "" AND NOT result EQUAL 0)
    message(SEND_ERROR "${name}: should pass, but: ${output}")
  elseif(NOT expected STREQUAL "" AND (result EQUAL 0 OR NOT output MATCHES "${expected}"))
    message(SEND_ERROR "${name}: should fail with \"${expected}\", but: ${output}")
  endif()
endfunction()

check(own compiler/plan/a.h compiler/plan/b.h "")
check(left compiler/plan/a.h compiler/spec/op_spec.h "")
check(outside compiler/plan/a.h fmt/format.h "")
check(boundary compiler/plan/a.h compiler/driver/compiler_api.h "")
check(right compiler/spec/x/a.cpp compiler/plan/skeleton.h "layer \"spec\" and includes \"compiler/plan/skeleton.h\" of layer \"plan\"")
check(undeclared compiler/plan/a.h autotune_cache/key.h "of layer \"cache\"")
check(linked_only compiler/plan/a.h templates/common/slots.h "of layer \"skeletons\"")
check(earlier_folder runtime/dispatch/a.cpp runtime/engine/b.h "")
check(later_folder runtime/engine/a.cpp runtime/dispatch/b.h "later folder of layer \"runtime\"")
check(later_inner_folder operations/tuning/data/a.h operations/tuning/tuner/b.h "later folder of layer \"operations\"")
check(later_layer runtime/dispatch/a.cpp operations/tuning/tuner/b.h "of layer \"operations\"")
check(nothing docs/a.h compiler/plan/b.h "no file was checked")
