# hstujit_test(NAME name SOURCES ... [APART sources] [DEPS shorts] [LIBS targets]
#              [LABELS cpu|gpu|stress|fuzz|memory|threads|objects ...] [TIMEOUT seconds]
#              [ENVIRONMENT NAME=value ...] [DEPENDS targets] [MLIR] [NO_MAIN] [EMULATES])
#
# One GoogleTest binary test_<name>; each of its tests becomes a ctest test, of at most TIMEOUT seconds, 300 if not said;
# the presets, but for tsan, run one that takes longer once more. DEPS are layers; LIBS may also be `hstujit`, the shared
# library. DEPENDS are targets that must be built first (a library opened with dlopen, a tool).
# MLIR: the sources include MLIR. NO_MAIN: the sources define main() themselves.
# EMULATES: the sources run kernels with tests/emulation/.
# LABELS: each is also a target, hstujit_tests_<label>, of the programs that have it. `memory` is what CI runs under the
# address sanitizer, `threads` under the thread sanitizer; `objects` needs an object file for each source. CTest knows
# several as one, "cpu+memory", which the regular expressions of `ctest -L` find by either.
# A test whose layer is not part of this build (HSTUJIT_BUILD_COMPILER=OFF) is left out.
#
# Tests that compile find the wheel that tools/install-deps.sh puts below build/nvrtc where there is no CUDA toolkit: it is
# the last place of the loader's.
find_package(GTest QUIET)
hstujit_require("GoogleTest" "${GTest_FOUND}")
include(GoogleTest)
# Tests are compiled for the sake of a short build: a release compiles them with -O1.
hstujit_add_precompiled(test LIBS GTest::gmock GTest::gtest OPTIONS $<$<CONFIG:Release,RelWithDebInfo>:-O1>)

file(GLOB hstujit_nvrtc_wheel ${PROJECT_SOURCE_DIR}/build/nvrtc/nvidia/*/lib)
list(JOIN hstujit_nvrtc_wheel ":" hstujit_nvrtc_wheel)

# tests/paths.h: the one object that has the folders of the clone and of the build inside.
add_library(hstujit_test_paths STATIC ${PROJECT_SOURCE_DIR}/tests/paths.cpp)
target_link_libraries(hstujit_test_paths PRIVATE hstujit_base)
target_compile_definitions(hstujit_test_paths PRIVATE HSTUJIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HSTUJIT_BINARY_DIR="${PROJECT_BINARY_DIR}")

# All test programs and what they depend on.
add_custom_target(hstujit_tests)

# How emulated kernels are compiled, besides -I (tests/emulation/emulated_kernel.cpp). The headers that each includes are
# compiled once, where g++ looks first.
set(hstujit_emulation_folder ${PROJECT_BINARY_DIR}/emulation)
set(hstujit_emulation_flags "-std=c++20 -O1 -w -fPIC -fvisibility=hidden -fpch-preprocess")
set(hstujit_emulation_launcher)
if(HSTUJIT_CCACHE)
  list(JOIN HSTUJIT_CCACHE_SETTINGS " " settings)
  set(hstujit_emulation_launcher "${settings} ${HSTUJIT_CCACHE}")
endif()
foreach(header cuda_emulation.h hopper_emulation.h)
  separate_arguments(command UNIX_COMMAND "${CMAKE_CXX_COMPILER} ${hstujit_emulation_flags}")
  list(APPEND command -I${hstujit_emulation_folder} -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/templates)
  set(compiled ${hstujit_emulation_folder}/tests/emulation/${header}.gch)
  file(MAKE_DIRECTORY ${hstujit_emulation_folder}/tests/emulation)
  add_custom_command(
    OUTPUT ${compiled}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${command} -MD -MF ${compiled}.d -MT ${compiled} -x c++-header ${PROJECT_SOURCE_DIR}/tests/emulation/${header} -o ${compiled}
    DEPFILE ${compiled}.d
    VERBATIM)
  list(APPEND hstujit_emulation_headers ${compiled})
endforeach()
add_custom_target(hstujit_emulation_headers DEPENDS ${hstujit_emulation_headers})

function(hstujit_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "MLIR;NO_MAIN;EMULATES" "NAME;TIMEOUT" "SOURCES;APART;DEPS;LIBS;LABELS;ENVIRONMENT;DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hstujit_test(${ARG_NAME}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  foreach(dep IN LISTS ARG_DEPS)
    if(NOT dep IN_LIST HSTUJIT_LAYERS)
      message(FATAL_ERROR "hstujit_test(${ARG_NAME}): \"${dep}\" is not a layer: ${HSTUJIT_LAYERS}")
    endif()
    if(NOT TARGET hstujit_${dep})
      message(STATUS "hstu-jit: test ${ARG_NAME} left out, hstujit_${dep} is not part of this build")
      return()
    endif()
  endforeach()
  foreach(needed IN LISTS ARG_LIBS ARG_DEPENDS)
    if(needed MATCHES "^hstujit" AND NOT TARGET ${needed})
      message(STATUS "hstu-jit: test ${ARG_NAME} left out, ${needed} is not part of this build")
      return()
    endif()
  endforeach()

  set(target test_${ARG_NAME})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE hstujit_base hstujit_test_paths ${ARG_LIBS} GTest::gmock GTest::gtest)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PRIVATE hstujit_${dep})
  endforeach()
  if(NOT ARG_NO_MAIN)
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
  endif()
  if(ARG_MLIR)
    hstujit_use_mlir(${target})
  else()
    hstujit_use_precompiled(${target} test)
  endif()
  hstujit_compile_together(${target} APART ${ARG_APART})
  if(ARG_EMULATES)
    set(emulation ${PROJECT_SOURCE_DIR}/tests/emulation)
    target_sources(${target} PRIVATE ${emulation}/cuda_emulation.cpp ${emulation}/emulated_kernel.cpp ${emulation}/hopper_emulation.cpp ${emulation}/stacks.cpp)
    set_source_files_properties(${emulation}/emulated_kernel.cpp PROPERTIES COMPILE_DEFINITIONS
      "HSTUJIT_CXX=\"${CMAKE_CXX_COMPILER}\";HSTUJIT_EMULATION_FLAGS=\"${hstujit_emulation_flags}\";HSTUJIT_EMULATION_LAUNCHER=\"${hstujit_emulation_launcher}\"")
    hstujit_optimise_for_speed(${emulation}/cuda_emulation.cpp ${emulation}/hopper_emulation.cpp ${emulation}/stacks.cpp)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/templates)
    target_compile_options(${target} PRIVATE -Wno-unknown-pragmas)
    set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
    add_dependencies(${target} hstujit_emulation_headers)
  endif()
  add_dependencies(hstujit_tests ${target})
  if(ARG_DEPENDS)
    add_dependencies(${target} ${ARG_DEPENDS})
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS cpu)
  endif()
  foreach(label IN LISTS ARG_LABELS)
    if(NOT TARGET hstujit_tests_${label})
      add_custom_target(hstujit_tests_${label})
    endif()
    add_dependencies(hstujit_tests_${label} ${target})
  endforeach()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  list(JOIN ARG_LABELS "+" labels)  # gtest_discover_tests takes no list
  set(properties LABELS "${labels}" TIMEOUT ${ARG_TIMEOUT})
  if(ARG_ENVIRONMENT)
    list(APPEND properties ENVIRONMENT "${ARG_ENVIRONMENT}")
  endif()
  if(hstujit_nvrtc_wheel)
    list(APPEND properties ENVIRONMENT_MODIFICATION "LD_LIBRARY_PATH=path_list_append:${hstujit_nvrtc_wheel}")
  endif()
  # A name that a test gives its values is the name; their bytes, which CTest would show beside it, differ from run to run.
  gtest_discover_tests(${target} TEST_PREFIX "${ARG_NAME}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                       PROPERTIES ${properties})
endfunction()

# Every folder of tests/ that registers tests.
function(hstujit_add_tests)
  add_subdirectory(${PROJECT_SOURCE_DIR}/tests/fakes ${PROJECT_BINARY_DIR}/tests/fakes)
  file(GLOB lists CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*/CMakeLists.txt)
  foreach(list IN LISTS lists)
    cmake_path(GET list PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    if(NOT name STREQUAL "fakes")
      add_subdirectory(${folder} ${PROJECT_BINARY_DIR}/tests/${name})
    endif()
  endforeach()
endfunction()
