# hstujit_library(NAME short SOURCES ... [DEPS shorts] [LIBS external targets] [PRIVATE_LIBS external targets]
#                 [MLIR] [PRECOMPILED group] [APART sources])
#
# One static, position-independent library per layer, named hstujit_<short>. DEPS are layers and are checked against
# cmake/layers.cmake; LIBS are anything else. MLIR: the sources include MLIR, so they share its precompiled header.
# PRECOMPILED: another group of cmake/precompiled.cmake than `base`.
# APART: sources that are never compiled together with others, since they share names of file scope with them.
function(hstujit_library)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "MLIR" "NAME;PRECOMPILED" "SOURCES;DEPS;LIBS;PRIVATE_LIBS;APART")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hstujit_library(${ARG_NAME}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  hstujit_check_layer(${ARG_NAME} ${ARG_DEPS})

  set_property(GLOBAL APPEND PROPERTY HSTUJIT_LAYERS_BUILT ${ARG_NAME})
  set_property(GLOBAL PROPERTY HSTUJIT_DEPS_${ARG_NAME} ${ARG_DEPS})

  set(target hstujit_${ARG_NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  target_link_libraries(${target} PUBLIC hstujit_base ${ARG_LIBS} PRIVATE ${ARG_PRIVATE_LIBS})
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PUBLIC hstujit_${dep})
  endforeach()
  if(ARG_MLIR)
    hstujit_use_mlir(${target})
  elseif(ARG_PRECOMPILED)
    hstujit_use_precompiled(${target} ${ARG_PRECOMPILED})
  else()
    hstujit_use_precompiled(${target} base)
  endif()
  hstujit_compile_together(${target} APART ${ARG_APART})
endfunction()

# hstujit_compile_together(target [APART sources]): with HSTUJIT_UNITY, eight sources of the target at a time, other than
# those of APART and those with options of their own. What a source takes from its precompiled header is instantiated
# anew in each compilation, which is half of what g++ does.
function(hstujit_compile_together target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "APART")
  if(HSTUJIT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
