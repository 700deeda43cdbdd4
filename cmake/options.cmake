# Options that choose what is built. Everything else is decided by what the machine has.
option(HSTUJIT_BUILD_TESTS "Build the tests" ON)
set(HSTUJIT_UNITY "" CACHE STRING
  "For clean builds: whose sources are compiled together where their lists say UNITY, \"tests\" or \"all\"")
option(HSTUJIT_BUILD_COMPILER "Build libhstujit_compiler.so (needs MLIR 22.1)" ON)
option(HSTUJIT_BUILD_HOST "Build libhstujit_host.so, the host backend (needs HSTUJIT_BUILD_COMPILER)" ON)
set(HSTUJIT_LLVM_VERSION "" CACHE STRING
  "With HSTUJIT_BUILD_COMPILER=OFF: the LLVM version, e.g. 22.1.8, of the build whose cubins are to be found in the cache")
if(NOT HSTUJIT_UNITY MATCHES "^(tests|all)?$")
  message(FATAL_ERROR "HSTUJIT_UNITY is \"${HSTUJIT_UNITY}\"; it may be tests, all or empty")
endif()
option(HSTUJIT_FUZZ "Build the targets of tests/fuzz for libFuzzer, too (needs clang)" OFF)
set(HSTUJIT_SANITIZE "" CACHE STRING "Sanitizers, separated by commas: address,undefined or thread")

if(NOT HSTUJIT_BUILD_COMPILER)
  set(HSTUJIT_BUILD_HOST OFF)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()
