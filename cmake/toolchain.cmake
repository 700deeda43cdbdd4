# Compiler and linker: language level, warnings, visibility, sanitizers, ccache and lld where they exist.
include(CheckLinkerFlag)
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/archives)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# Two clones in two folders share the cache and build the same bytes: ccache makes paths below the sources relative, and
# the compiler writes them relative to the sources. -fpch-preprocess lets ccache see through g++'s precompiled headers;
# clang's must not hold the times of the files that they were made from. Comments count: a precompiled header of another
# clone, whose files differ in comments alone, has files that are none of this clone's for #pragma once. The inode cache
# keeps digests of unchanged files: a hit would otherwise read hundreds of megabytes of precompiled headers again.
find_program(HSTUJIT_CCACHE ccache)
if(HSTUJIT_CCACHE AND (NOT CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$"))
  set(HSTUJIT_CCACHE_SETTINGS CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_NOHASHDIR=1 CCACHE_INODECACHE=1 CCACHE_COMMENTS=1)
  set(launcher ${CMAKE_COMMAND} -E env ${HSTUJIT_CCACHE_SETTINGS} CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${HSTUJIT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  else()
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endif()

# A compiler looks for "ld.lld" only; a machine may have it under its versioned name alone.
find_program(HSTUJIT_LLD NAMES ld.lld-22 ld.lld)
if(HSTUJIT_LLD)
  set(linker_folder ${PROJECT_BINARY_DIR}/linker)
  file(MAKE_DIRECTORY ${linker_folder})
  file(CREATE_LINK ${HSTUJIT_LLD} ${linker_folder}/ld.lld SYMBOLIC)
  add_link_options(-B${linker_folder} -fuse-ld=lld)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Werror -ffunction-sections -fdata-sections)
# g++ 12 takes unused members of a std::variant for uninitialised values, and what a long std::string holds for its short
# buffer.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
endif()
# libstdc++ 12 uses in std::stable_sort what it calls deprecated, of which clang warns at the caller.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-deprecated-declarations)
endif()
add_link_options(-Wl,--gc-sections)
add_compile_options(-ffile-prefix-map=${PROJECT_BINARY_DIR}=build -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)

# Hardening. The sanitizers have interceptors of their own for the functions that _FORTIFY_SOURCE replaces.
add_compile_options(-fstack-protector-strong)
if(NOT HSTUJIT_SANITIZE)
  add_compile_options($<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=2>)
endif()
add_link_options(-Wl,-z,relro,-z,now)
# Relocations in a twentieth of their room. The loader of glibc 2.36 is the first that reads them so.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error older
#endif
int main() {}" HSTUJIT_GLIBC_PACKS_RELOCATIONS)
check_linker_flag(CXX "-Wl,-z,pack-relative-relocs" HSTUJIT_LINKER_PACKS_RELOCATIONS)
if(HSTUJIT_GLIBC_PACKS_RELOCATIONS AND HSTUJIT_LINKER_PACKS_RELOCATIONS)
  add_link_options(-Wl,-z,pack-relative-relocs)
endif()
# Programs have any address, too: all objects are compiled for that (cmake/precompiled.cmake).
add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)

# For files that run seldom, and for the few that every launch runs through or that loop over elements; a debug build knows
# no difference.
set(HSTUJIT_OPTIMISE_SIZE $<$<CONFIG:Release,RelWithDebInfo>:-Oz>)
set(HSTUJIT_OPTIMISE_SPEED $<$<CONFIG:Release,RelWithDebInfo>:-O2>)
set(HSTUJIT_OPTIMISE_LOOPS $<$<CONFIG:Release,RelWithDebInfo>:-O3>)  # loops over rows: g++ uses vectors of numbers

# Coverage that libFuzzer follows; tests/fuzz links the fuzzer itself.
if(HSTUJIT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HSTUJIT_FUZZ is ON and the compiler is ${CMAKE_CXX_COMPILER_ID}; libFuzzer comes with clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(HSTUJIT_SANITIZE)
  add_compile_options(-fsanitize=${HSTUJIT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HSTUJIT_SANITIZE})
  # Half of the tests' time would go into the loops over elements. Optimising everything takes longer than it saves.
  set(HSTUJIT_OPTIMISE_SPEED -O2)
  set(HSTUJIT_OPTIMISE_LOOPS -O2)
  # Null pointers the address sanitizer finds by itself; with these three, compiling takes half as long again.
  if(HSTUJIT_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=null,alignment,vptr)
    # Clang checks types of called functions; those of a driver are called by types of our own, which are equivalent.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      add_compile_options(-fno-sanitize=function)
    endif()
  endif()
else()
  # A library that lacks a symbol fails here instead of at its first use.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:-Wl,-z,defs>)
endif()
