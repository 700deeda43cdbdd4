# cmake -DROOT=<tree> -P check_reads.cmake
#
# Fails when a source parses or writes JSON, or reads a file, by itself: compiler/support/json.h bounds how deep a text
# may be nested, and compiler/support/files.h what is read at all. The former also says how values go, which every source
# that has some must know, and of which types they may be.
cmake_minimum_required(VERSION 3.25)

set(json "[Jj]son::(parse|accept|sax_parse)[ \t]*[(]|[.>]dump[(]")
set(values "include <nlohmann/json[.]hpp>")
set(types "nlohmann::(basic_)?json([^_A-Za-z]|$)")
set(files "ifstream|fopen[ \t]*[(]|std::fread")

# Fails for each line of a source that matches `pattern`, but in the files after it.
set(checked 0)
function(check pattern instead)
  foreach(folder IN ITEMS compiler templates autotune_cache runtime operations tools)
    file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.hpp ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.c)
    foreach(source IN LISTS sources)
      if(source IN_LIST ARGN)
        continue()
      endif()
      math(EXPR checked "${checked} + 1")
      file(STRINGS ${ROOT}/${source} lines REGEX "${pattern}")
      foreach(line IN LISTS lines)
        if(NOT line MATCHES "^[ \t]*//")
          string(STRIP "${line}" line)
          message(SEND_ERROR "${source} has \"${line}\"; use ${instead}")
        endif()
      endforeach()
    endforeach()
  endforeach()
  set(checked ${checked} PARENT_SCOPE)
endfunction()

check("${json}" "the functions of compiler/support/json.h" compiler/support/json.cpp)
check("${values}" "compiler/support/json.h" compiler/support/json.h)
check("${types}" "Json or SortedJson of compiler/support/json.h" compiler/support/json.h)
check("${files}" "the functions of compiler/support/files.h")
if(checked EQUAL 0)
  message(SEND_ERROR "no file was checked below ${ROOT}")
endif()
message(STATUS "checked the reads of ${checked} files")
