# check_reads.cmake finds what reads by itself and lets the rest pass.
#   cmake -DSCRIPT=<check_reads.cmake> -DFOLDER=<scratch> -P check_reads_test.cmake

# Runs the script over one file with one line; `expected` is part of its message, or empty when it must pass.
function(check name path line expected)
  file(REMOVE_RECURSE ${FOLDER}/tree)
  file(WRITE ${FOLDER}/tree/${path} "#pragma once\n${line}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${FOLDER}/tree -P ${SCRIPT}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(expected STREQUAL "" AND NOT result EQUAL 0)
    message(SEND_ERROR "${name}: should pass, but: ${output}")
  elseif(NOT expected STREQUAL "" AND (result EQUAL 0 OR NOT output MATCHES "${expected}"))
    message(SEND_ERROR "${name}: should fail with \"${expected}\", but: ${output}")
  endif()
endfunction()

check(own runtime/a.cpp "const Json a = parse_json(text)" "")
check(entry compiler/support/json.cpp "a = Json::sax_parse(text)" "")
check(comment runtime/a.cpp "// not Json::parse(text)" "")
check(parse runtime/a.cpp "const auto a = nlohmann::json::parse(text)" "runtime/a.cpp has .* use the functions of compiler/support/json.h")
check(ordered tools/a.cpp "const auto a = Json::parse(text)" "compiler/support/json.h")
check(dump compiler/spec/a.h "return json.dump()" "compiler/support/json.h")
check(values runtime/a.h "#include <nlohmann/json.hpp>" "use compiler/support/json.h")
check(type runtime/a.cpp "std::map<nlohmann::json, int> a" "use Json or SortedJson of compiler/support/json.h")
check(types_of_its_own runtime/a.cpp "using A = nlohmann::basic_json<>" "Json or SortedJson")
check(declared runtime/a.h "void a(const nlohmann::ordered_json& b)" "")
check(forward runtime/a.h "#include <nlohmann/json_fwd.hpp>" "")
check(stream autotune_cache/a.h "std::ifstream file(path)" "compiler/support/files.h")
check(nothing docs/a.h "" "no file was checked")
