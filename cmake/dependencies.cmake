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

# Every library of the project sees these and the two include roots.
add_library(hstujit_base INTERFACE)
target_include_directories(hstujit_base INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
# Generated headers: what tablegen writes has unused parameters, which only system headers may have.
target_include_directories(hstujit_base SYSTEM INTERFACE ${PROJECT_BINARY_DIR})
target_link_libraries(hstujit_base INTERFACE fmt::fmt-header-only nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
