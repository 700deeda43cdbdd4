# Headers that many files include are compiled once for each group of files: parsing them is most of what a file costs.
# Every file still includes what it uses: lint compiles those without MLIR, tests and templates without any of this.

# hstujit_add_precompiled(group [HEADER name] [LIBS targets] [OPTIONS options]): the group whose header is
# precompiled/<name>.h, which is <group>.h when not given. Its users get the same compile options.
function(hstujit_add_precompiled group)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "HEADER" "LIBS;OPTIONS")
  if(NOT ARG_HEADER)
    set(ARG_HEADER ${group})
  endif()
  add_library(hstujit_precompiled_${group} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled/empty.cpp)
  target_link_libraries(hstujit_precompiled_${group} PRIVATE hstujit_base ${ARG_LIBS})
  # In angle brackets, CMake writes the name as it stands here, so that clones in two folders share it in ccache.
  target_precompile_headers(hstujit_precompiled_${group} PRIVATE <cmake/precompiled/${ARG_HEADER}.h>)
  target_compile_options(hstujit_precompiled_${group} PRIVATE ${ARG_OPTIONS})
endfunction()

# Gives `target` the precompiled header of `group`.
function(hstujit_use_precompiled target group)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    # The header is compiled with -fPIC; g++ takes it for no other setting, so not for -fPIE. -pie links both.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  get_target_property(options hstujit_precompiled_${group} COMPILE_OPTIONS)
  if(options)
    target_compile_options(${target} PRIVATE ${options})
  endif()
  target_precompile_headers(${target} REUSE_FROM hstujit_precompiled_${group})
endfunction()

hstujit_add_precompiled(base)
hstujit_add_precompiled(cold HEADER base OPTIONS ${HSTUJIT_OPTIMISE_SIZE})

# hstujit_optimise_for_speed(files... [LOOPS]): of a library that is compiled for size; the header of its group does not
# suit them. LOOPS: they spend their time in loops over the elements of rows.
function(hstujit_optimise_for_speed)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "LOOPS" "" "")
  set(options "${HSTUJIT_OPTIMISE_SPEED}")
  if(ARG_LOOPS)
    set(options "${HSTUJIT_OPTIMISE_LOOPS}")
  endif()
  set_source_files_properties(${ARG_UNPARSED_ARGUMENTS} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${options}")
endfunction()
