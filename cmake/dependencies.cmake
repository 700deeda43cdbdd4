# Libraries from the distribution. What ships inside libhstujit.so is header-only or linked statically.
find_package(Threads REQUIRED)

# hstujit_require(what found): ends the configuration where `found`, a result of find_*, is false.
function(hstujit_require what found)
  if(NOT found)
    message(FATAL_ERROR
      "hstu-jit needs ${what}, which was not found: tools/install-deps.sh installs what the build needs")
  endif()
endfunction()

find_package(nlohmann_json 3.10 QUIET)
hstujit_require("nlohmann_json 3.10 or newer" "${nlohmann_json_FOUND}")
find_package(fmt QUIET)
hstujit_require("fmt" "${fmt_FOUND}")
find_package(CLI11 QUIET)
hstujit_require("CLI11" "${CLI11_FOUND}")

find_path(HSTUJIT_SODIUM_INCLUDE_DIR sodium.h)
hstujit_require("sodium.h" "${HSTUJIT_SODIUM_INCLUDE_DIR}")
find_library(HSTUJIT_SODIUM_ARCHIVE NAMES libsodium.a)
hstujit_require("libsodium.a" "${HSTUJIT_SODIUM_ARCHIVE}")
add_library(hstujit_sodium INTERFACE)
target_include_directories(hstujit_sodium SYSTEM INTERFACE ${HSTUJIT_SODIUM_INCLUDE_DIR})
target_link_libraries(hstujit_sodium INTERFACE ${HSTUJIT_SODIUM_ARCHIVE} Threads::Threads)

find_path(HSTUJIT_ZSTD_INCLUDE_DIR zstd.h)
hstujit_require("zstd.h" "${HSTUJIT_ZSTD_INCLUDE_DIR}")
find_library(HSTUJIT_ZSTD_ARCHIVE NAMES libzstd.a)
hstujit_require("libzstd.a" "${HSTUJIT_ZSTD_ARCHIVE}")
add_library(hstujit_zstd INTERFACE)
target_include_directories(hstujit_zstd SYSTEM INTERFACE ${HSTUJIT_ZSTD_INCLUDE_DIR})
target_link_libraries(hstujit_zstd INTERFACE ${HSTUJIT_ZSTD_ARCHIVE})

find_library(HSTUJIT_ZLIB_ARCHIVE NAMES libz.a)
hstujit_require("libz.a" "${HSTUJIT_ZLIB_ARCHIVE}")
add_library(hstujit_zlib INTERFACE)
target_link_libraries(hstujit_zlib INTERFACE ${HSTUJIT_ZLIB_ARCHIVE})

# Headers only: the library is opened at run time, where there is one.
find_path(HSTUJIT_CURL_INCLUDE_DIR curl/curl.h PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE})
hstujit_require("curl/curl.h" "${HSTUJIT_CURL_INCLUDE_DIR}")
add_library(hstujit_curl_headers INTERFACE)
target_include_directories(hstujit_curl_headers SYSTEM INTERFACE ${HSTUJIT_CURL_INCLUDE_DIR})

# The functions of fmt 9 are compiled once here; as a header-only library, which every other version is, they cost each
# file that formats a second of CPU. The shared libfmt of the distribution is nothing that a shipped library may need.
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(hstujit_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt.cpp)
  target_include_directories(hstujit_fmt SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_options(hstujit_fmt PRIVATE ${HSTUJIT_OPTIMISE_SIZE})
else()
  add_library(hstujit_fmt ALIAS fmt::fmt-header-only)
endif()

# Every library of the project sees these and the two include roots.
add_library(hstujit_base INTERFACE)
target_include_directories(hstujit_base INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
# Generated headers: what tablegen writes has unused parameters, which only system headers may have.
target_include_directories(hstujit_base SYSTEM INTERFACE ${PROJECT_BINARY_DIR})
target_link_libraries(hstujit_base INTERFACE hstujit_fmt nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
