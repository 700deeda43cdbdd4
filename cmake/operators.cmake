# hstujit_check_operators(root): fails unless every operator below `root` is whole, so that a missing or misspelt file is
# found here and not by the first user who calls the operator.
#
# An operator is a folder of compiler/spec. It needs a template with its host face and a file of the host backend; a
# file of compiler/ir is optional, because an operator may have no regions. A folder or file of these places that is
# named after no operator belongs to nobody: its name is misspelt, or its spec is missing.
function(hstujit_check_operators root)
  set(operators)
  file(GLOB folders LIST_DIRECTORIES true RELATIVE ${root}/compiler/spec ${root}/compiler/spec/*)
  foreach(name IN LISTS folders)
    if(IS_DIRECTORY ${root}/compiler/spec/${name})
      list(APPEND operators ${name})
    endif()
  endforeach()

  foreach(name IN LISTS operators)
    set(skeletons 0)
    file(GLOB templates ${root}/templates/${name}/*.cuh)
    foreach(template IN LISTS templates)
      cmake_path(REPLACE_EXTENSION template cpp OUTPUT_VARIABLE face)
      if(EXISTS ${face})
        math(EXPR skeletons "${skeletons} + 1")
      endif()
    endforeach()
    if(skeletons EQUAL 0)
      message(SEND_ERROR "operator \"${name}\" of compiler/spec/${name}/ has no template: templates/${name}/ must hold <name>.cuh with its host face <name>.cpp (docs/adding-an-operator.md)")
    endif()
    if(NOT EXISTS ${root}/compiler/host/operators/${name}.cpp)
      message(SEND_ERROR "operator \"${name}\" of compiler/spec/${name}/ is not in the host backend: compiler/host/operators/${name}.cpp is missing (docs/adding-an-operator.md)")
    endif()
  endforeach()

  file(GLOB parts LIST_DIRECTORIES true RELATIVE ${root}
       ${root}/compiler/ir/operators/*.cpp ${root}/compiler/host/operators/*.cpp ${root}/templates/*)
  foreach(part IN LISTS parts)
    cmake_path(GET part STEM name)
    if(part MATCHES "^templates/" AND (name STREQUAL "common" OR NOT IS_DIRECTORY ${root}/${part}))
      continue()
    endif()
    if(NOT name IN_LIST operators)
      message(SEND_ERROR "${part} is named after no operator: compiler/spec/${name}/ is missing; operators: ${operators}")
    endif()
  endforeach()
endfunction()
