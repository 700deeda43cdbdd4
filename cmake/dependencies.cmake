# Libraries from the distribution. What ships inside libhstujit.so is header-only or linked statically.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)

find_path(HSTUJIT_SODIUM_INCLUDE_DIR sodium.h REQUIRED)
find_library(HSTUJIT_SODIUM_ARCHIVE NAMES libsodium.a REQUIRED)
add_library(hstujit_sodium INTERFACE)
target_include_directories(hstujit_sodium SYSTEM INTERFACE ${HSTUJIT_SODIUM_INCLUDE_DIR})
target_link_libraries(hstujit_sodium INTERFACE ${HSTUJIT_SODIUM_ARCHIVE} Threads::Threads)

find_path(HSTUJIT_ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(HSTUJIT_ZSTD_ARCHIVE NAMES libzstd.a REQUIRED)
add_library(hstujit_zstd INTERFACE)
target_include_directories(hstujit_zstd SYSTEM INTERFACE ${HSTUJIT_ZSTD_INCLUDE_DIR})
target_link_libraries(hstujit_zstd INTERFACE ${HSTUJIT_ZSTD_ARCHIVE})

find_library(HSTUJIT_ZLIB_ARCHIVE NAMES libz.a REQUIRED)
add_library(hstujit_zlib INTERFACE)
target_link_libraries(hstujit_zlib INTERFACE ${HSTUJIT_ZLIB_ARCHIVE})

# Headers only: the library is opened at run time, where there is one.
find_path(HSTUJIT_CURL_INCLUDE_DIR curl/curl.h PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE} REQUIRED)
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
