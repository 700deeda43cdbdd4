# Options that choose what is built. Everything else is decided by what the machine has.
option(HSTUJIT_BUILD_TESTS "Build the tests" ON)
option(HSTUJIT_UNITY "Compile several sources together: half the time of a clean build" OFF)
option(HSTUJIT_BUILD_COMPILER "Build libhstujit_compiler.so (needs MLIR 22.1)" ON)
option(HSTUJIT_BUILD_HOST "Build libhstujit_host.so, the host backend (needs HSTUJIT_BUILD_COMPILER)" ON)
set(HSTUJIT_LLVM_VERSION "" CACHE STRING
  "With HSTUJIT_BUILD_COMPILER=OFF: the LLVM version, e.g. 22.1.8, of the build whose cubins are to be found in the cache")
option(HSTUJIT_FUZZ "Build the targets of tests/fuzz for libFuzzer, too (needs clang)" OFF)
set(HSTUJIT_SANITIZE "" CACHE STRING "Sanitizers, separated by commas: address,undefined or thread")

if(NOT HSTUJIT_BUILD_COMPILER)
  set(HSTUJIT_BUILD_HOST OFF)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()
