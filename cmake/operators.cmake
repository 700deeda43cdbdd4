# hstujit_operator_table(OUT file [ROOTS folders]): operator_table() and call_table(), of the folders
# compiler/spec/operators/<op>/, each of which defines parse_<op>, schema_<op> and call_<op>. ROOTS: trees beside the
# repository's that have operators, too.
function(hstujit_operator_table)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "OUT" "ROOTS")
  hstujit_generate_registry(
    OUT ${ARG_OUT}
    ROOTS ${ARG_ROOTS}
    GLOB compiler/spec/operators/*/*.cpp
    NAME "^compiler/spec/operators/([a-z0-9_]+)/"
    INCLUDES "\"compiler/spec/call/declaration.h\"" "\"compiler/spec/operator_table.h\""
    DECLARE "OpSpecPtr parse_@NAME@(const nlohmann::ordered_json& json, const std::string& path, Mistakes& mistakes); nlohmann::ordered_json schema_@NAME@(); void call_@NAME@(CallDeclaration& call);"
    ENTRY "{\"@NAME@\", &parse_@NAME@, &schema_@NAME@}"
    TABLE "const std::vector<OperatorEntry>& operator_table()"
    ELEMENT "OperatorEntry"
    SECOND_ENTRY "{\"@NAME@\", &call_@NAME@}"
    SECOND_TABLE "const std::vector<CallEntry>& call_table()"
    SECOND_ELEMENT "CallEntry")
endfunction()

# hstujit_reference_table(OUT file [ROOTS folders]): reference_table(), of the files
# compiler/spec/operators/<op>/reference.cpp, each of which defines reference_<op>.
function(hstujit_reference_table)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "OUT" "ROOTS")
  hstujit_generate_registry(
    OUT ${ARG_OUT}
    ROOTS ${ARG_ROOTS}
    GLOB compiler/spec/operators/*/reference.cpp
    NAME "^compiler/spec/operators/([a-z0-9_]+)/reference\\.cpp$"
    INCLUDES "\"compiler/spec/reference.h\""
    DECLARE "const OperatorReference& reference_@NAME@();"
    ENTRY "{\"@NAME@\", &reference_@NAME@}"
    TABLE "const std::vector<ReferenceEntry>& reference_table()"
    ELEMENT "ReferenceEntry")
endfunction()

# hstujit_operator_builders(OUT file [ROOTS folders]): operator_builders(), of the files compiler/ir/operators/<op>.cpp,
# each of which defines build_<op>.
function(hstujit_operator_builders)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "OUT" "ROOTS")
  hstujit_generate_registry(
    OUT ${ARG_OUT}
    ROOTS ${ARG_ROOTS}
    GLOB compiler/ir/operators/*.cpp
    NAME "^compiler/ir/operators/([a-z0-9_]+)\\.cpp$"
    INCLUDES "\"compiler/ir/build.h\""
    DECLARE "Result<Module> build_@NAME@(mlir::MLIRContext& context, const OpSpec& spec);"
    ENTRY "{\"@NAME@\", &build_@NAME@}"
    TABLE "const std::vector<OperatorBuilder>& operator_builders()"
    ELEMENT "OperatorBuilder")
endfunction()

# hstujit_check_operators(root): fails unless every family of operators below `root` is whole and every file of an
# operator belongs to one, so that a missing or misspelt file is found here and not by the first user who calls the
# operator.
#
# A family is a folder of templates/ other than common/. It needs a template with its host side and a folder of the host
# backend. An operator is a folder of compiler/spec/operators/; a file of compiler/ir/operators/ that is named after none
# is misspelt, or its spec is missing, and so is a folder of tests/operators/.
function(hstujit_check_operators root)
  file(GLOB folders LIST_DIRECTORIES true RELATIVE ${root} ${root}/templates/* ${root}/compiler/host/families/*)
  set(families)
  foreach(folder IN LISTS folders)
    cmake_path(GET folder FILENAME name)
    if(IS_DIRECTORY ${root}/${folder} AND NOT name STREQUAL "common")
      list(APPEND families ${name})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES families)
  foreach(name IN LISTS families)
    set(skeletons 0)
    file(GLOB_RECURSE templates ${root}/templates/${name}/kernel.cuh)
    foreach(template IN LISTS templates)
      cmake_path(REPLACE_EXTENSION template cpp OUTPUT_VARIABLE host_side)
      if(EXISTS ${host_side})
        math(EXPR skeletons "${skeletons} + 1")
      endif()
    endforeach()
    if(skeletons EQUAL 0)
      message(SEND_ERROR "family \"${name}\" has no template: templates/${name}/ must hold a kernel.cuh with its host side kernel.cpp (docs/adding-an-operator.md)")
    endif()
    file(GLOB host ${root}/compiler/host/families/${name}/*.cpp)
    if(NOT host)
      message(SEND_ERROR "family \"${name}\" is not in the host backend: compiler/host/families/${name}/ has no .cpp (docs/adding-an-operator.md)")
    endif()
  endforeach()

  file(GLOB operators LIST_DIRECTORIES true RELATIVE ${root}/compiler/spec/operators ${root}/compiler/spec/operators/*)
  file(GLOB builders RELATIVE ${root} ${root}/compiler/ir/operators/*.cpp)
  foreach(builder IN LISTS builders)
    cmake_path(GET builder STEM name)
    if(NOT name IN_LIST operators)
      message(SEND_ERROR "${builder} is named after no operator: compiler/spec/operators/${name}/ is missing; operators: ${operators}")
    endif()
  endforeach()
  file(GLOB tests LIST_DIRECTORIES true RELATIVE ${root}/tests/operators ${root}/tests/operators/*)
  foreach(name IN LISTS tests)
    if(IS_DIRECTORY ${root}/tests/operators/${name} AND NOT name IN_LIST operators)
      message(SEND_ERROR "tests/operators/${name}/ is named after no operator: compiler/spec/operators/${name}/ is missing; operators: ${operators}")
    endif()
  endforeach()
endfunction()
