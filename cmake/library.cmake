# hstujit_library(NAME short SOURCES ... [DEPS shorts] [LIBS external targets] [PRIVATE_LIBS external targets]
#                 [MLIR] [PRECOMPILED group] [UNITY])
#
# One static, position-independent library per layer, named hstujit_<short>. DEPS are layers and are checked against
# cmake/layers.cmake; LIBS are anything else. MLIR: the sources include MLIR, so they share its precompiled header.
# PRECOMPILED: another group of cmake/precompiled.cmake than `base`.
# UNITY: the sources can be compiled together, so nothing of file scope has the same name in two of them. The sanitizer
# presets do so, in half the time; the others compile each file by itself, which shows what it does not include.
function(hstujit_library)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "MLIR;UNITY" "NAME;PRECOMPILED" "SOURCES;DEPS;LIBS;PRIVATE_LIBS")
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
  if(ARG_UNITY AND HSTUJIT_UNITY STREQUAL "all")
    hstujit_compile_together(${target})
  endif()
endfunction()

# Eight sources at a time, but for those with options of their own.
function(hstujit_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
endfunction()
