# hstujit_shared_library(NAME target EXPORTS pattern ROOTS shorts)
#
# A shared object made of the static libraries ROOTS and what they use. Only the symbols that match `pattern` are
# visible: the version script hides what comes out of archives, so that LLVM or libsodium in it meet no other copy.
function(hstujit_shared_library)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;EXPORTS" "ROOTS")
  set(script ${PROJECT_BINARY_DIR}/${ARG_NAME}.map)
  file(CONFIGURE OUTPUT ${script} CONTENT "{\n  global: ${ARG_EXPORTS};\n  local: *;\n};\n")
  set(source ${PROJECT_BINARY_DIR}/${ARG_NAME}_library.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// The contents of this library are in its archives.\n")

  add_library(${ARG_NAME} SHARED ${source})
  foreach(root IN LISTS ARG_ROOTS)
    target_link_libraries(${ARG_NAME} PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,hstujit_${root}>)
  endforeach()
  target_link_options(${ARG_NAME} PRIVATE -Wl,--version-script=${script} -Wl,--as-needed)
  # Functions with the same code, most of them instances of templates, are one: 5 % of libhstujit.so. Nothing here compares
  # their addresses. -O2 shares the ends of texts.
  if(HSTUJIT_LLD)
    target_link_options(${ARG_NAME} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-Wl,--icf=all,-O2>)
  endif()
  set_target_properties(${ARG_NAME} PROPERTIES LINK_DEPENDS ${script})
  hstujit_runpath(${ARG_NAME} FROM ${CMAKE_LIBRARY_OUTPUT_DIRECTORY} INSTALLED_FROM ${CMAKE_INSTALL_FULL_LIBDIR})
endfunction()

# hstujit_runpath(target FROM <folder of the build> INSTALLED_FROM <folder>)
#
# Where what is installed looks for the libraries: beside itself, wherever that is. Both trees have the same text. CMake
# would exchange one for another at the installation, and makes room for that by ":" at the end, which the loader takes
# for the current folder.
function(hstujit_runpath target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "FROM;INSTALLED_FROM" "")
  file(RELATIVE_PATH built ${ARG_FROM} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  file(RELATIVE_PATH installed ${ARG_INSTALLED_FROM} ${CMAKE_INSTALL_FULL_LIBDIR})
  set(folders $ORIGIN/${installed} $ORIGIN/${built})
  list(TRANSFORM folders REPLACE "/$" "")
  list(REMOVE_DUPLICATES folders)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${folders}" BUILD_WITH_INSTALL_RPATH ON)
endfunction()
