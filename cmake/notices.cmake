# The notices of what is linked statically: one file per component, NOTICES.<component> beside the licence. The texts
# come with the distribution's packages, so they belong to the versions that are linked.
#
# hstujit_notice(NAME title [PACKAGE package] [FILES files...])
#
# PACKAGE: the text is the copyright file of that Debian package; where the library comes from elsewhere, the cache
# variable HSTUJIT_NOTICE_<NAME> names the file of its licence. FILES: what follows it. Of a header, that is the comment
# with the copyright; of any other file, all.
function(hstujit_notice name title)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "PACKAGE" "FILES")
  if(ARG_PACKAGE)
    find_file(HSTUJIT_NOTICE_${name} copyright PATHS /usr/share/doc/${ARG_PACKAGE} NO_DEFAULT_PATH
              DOC "The licence of ${title}, which is linked statically" REQUIRED)
    list(PREPEND ARG_FILES ${HSTUJIT_NOTICE_${name}})
  endif()
  set(text "==== ${title}\n\n")
  foreach(file IN LISTS ARG_FILES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} content)
    if(file MATCHES "\\.h$")
      hstujit_comment_with_copyright(content "${content}" ${file})
    endif()
    string(APPEND text "${content}\n")
  endforeach()
  set(HSTUJIT_NOTICE_TEXT_${name} "${text}" PARENT_SCOPE)
endfunction()

# out = the first comment of `text` that has "Copyright" in it.
function(hstujit_comment_with_copyright out text file)
  string(FIND "${text}" "Copyright" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${file} has no copyright any more: see what its notice is now, and change cmake/notices.cmake")
  endif()
  string(SUBSTRING "${text}" 0 ${place} before)
  string(FIND "${before}" "/*" begin REVERSE)
  string(SUBSTRING "${text}" ${begin} -1 text)
  string(FIND "${text}" "*/" length)
  math(EXPR length "${length} + 3")
  string(SUBSTRING "${text}" 0 ${length} text)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# hstujit_install_notices(component names...)
function(hstujit_install_notices component)
  set(text "Notices of the software of others that is linked into the files of the component ${component} of hstu-jit.
The licence of hstu-jit itself is in the file LICENSE. A package's text also lists files that are not linked, such as
the packaging of the distribution. Where it leads to the Apache License 2.0 of a Debian system: LICENSE has that text.

")
  foreach(name IN LISTS ARGN)
    string(APPEND text "${HSTUJIT_NOTICE_TEXT_${name}}")
  endforeach()
  file(WRITE ${PROJECT_BINARY_DIR}/notices/NOTICES.${component} "${text}")
  install(FILES ${PROJECT_BINARY_DIR}/notices/NOTICES.${component} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
endfunction()

hstujit_notice(FMT "fmt" PACKAGE libfmt-dev)
hstujit_notice(JSON "JSON for Modern C++" PACKAGE nlohmann-json3-dev)
hstujit_notice(SODIUM "libsodium" PACKAGE libsodium-dev)
hstujit_notice(ZSTD "Zstandard" PACKAGE libzstd-dev)
hstujit_notice(CLI11 "CLI11" PACKAGE libcli11-dev)
hstujit_install_notices(runtime FMT JSON SODIUM ZSTD)
hstujit_install_notices(operations FMT JSON SODIUM ZSTD CLI11)
if(HSTUJIT_BUILD_COMPILER)
  # LLVM holds parts of others, whose notices its package leaves out.
  set(support ${LLVM_INCLUDE_DIRS}/llvm/Support)
  hstujit_notice(LLVM "LLVM and MLIR" PACKAGE llvm-${LLVM_VERSION_MAJOR}-dev)
  hstujit_notice(LLVM_PARTS "LLVM: regular expressions, Unicode conversions, xxHash"
                 FILES ${PROJECT_SOURCE_DIR}/cmake/notices/llvm_regex.txt ${support}/ConvertUTF.h ${support}/xxhash.h)
  hstujit_install_notices(compiler FMT JSON SODIUM LLVM LLVM_PARTS)
endif()
if(HSTUJIT_BUILD_HOST)
  hstujit_notice(ZLIB "zlib" PACKAGE zlib1g-dev)
  hstujit_install_notices(host FMT JSON SODIUM LLVM LLVM_PARTS ZSTD ZLIB)
endif()
