# An installation, component by component, and what its users do with it: build and run the examples by find_package and
# by pkg-config, and serve from a filled cache with the runtime alone.
#   cmake -DBUILD=<build folder> -DSCRATCH=<folder> -DCC=<C compiler> -DCXX=<C++ compiler> -DNM=<nm> -DLIBDIR=lib
#         [-DPKG_CONFIG=<program>] -P install_test.cmake
file(REMOVE_RECURSE ${SCRATCH})

# run(OUT variable [CODE variable] COMMAND ...): fails the test unless the command succeeds or CODE is given.
function(run)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "OUT;CODE" "COMMAND")
  execute_process(COMMAND ${ARG_COMMAND} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(ARG_CODE)
    set(${ARG_CODE} ${code} PARENT_SCOPE)
  elseif(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARG_COMMAND} ended with ${code}:\n${output}")
  endif()
  if(ARG_OUT)
    set(${ARG_OUT} "${output}" PARENT_SCOPE)
  endif()
endfunction()

# install(prefix components...)
function(install prefix)
  foreach(component IN LISTS ARGN)
    run(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --strip --prefix ${prefix} --component ${component})
  endforeach()
endfunction()

function(expect_files prefix)
  foreach(file IN LISTS ARGN)
    if(NOT EXISTS ${prefix}/${file})
      message(SEND_ERROR "${prefix} has no ${file}")
    endif()
  endforeach()
endfunction()

# An example of the installation, run from nowhere near it.
function(check_example program)
  run(OUT output COMMAND ${program})
  if(NOT output MATCHES "largest difference from plain C")
    message(SEND_ERROR "${program} says: ${output}")
  endif()
endfunction()

set(all ${SCRATCH}/all)
install(${all} runtime compiler host dev)
set(examples ${all}/share/hstujit/examples)
expect_files(${all} bin/hstujit ${LIBDIR}/libhstujit.so ${LIBDIR}/libhstujit_compiler.so ${LIBDIR}/libhstujit_host.so
             libexec/hstujit/hstujit-worker include/hstujit/hstujit.h include/hstujit/hstujit.hpp include/hstujit/operators.hpp
             include/hstujit/dlpack.h share/hstujit/examples/serve.cpp share/hstujit/examples/configs/serve.json
             ${LIBDIR}/cmake/hstujit/hstujit-config.cmake ${LIBDIR}/pkgconfig/hstujit.pc
             share/hstujit/hstujit.schema.json share/hstujit/examples/attention.c share/hstujit/examples/configs/ml100k.json
             share/hstujit/records/README.md share/doc/hstujit/LICENSE share/doc/hstujit/docs/deployment.md)
run(OUT symbols COMMAND ${NM} ${all}/${LIBDIR}/libhstujit.so)
if(NOT symbols MATCHES "no symbols")
  message(SEND_ERROR "${all}/${LIBDIR}/libhstujit.so is not stripped")
endif()

# Links of the pages lead to what is installed.
file(GLOB_RECURSE pages ${all}/share/doc/hstujit/*.md)
list(LENGTH pages count)
if(count LESS 10)
  message(SEND_ERROR "${all}/share/doc/hstujit has ${count} pages")
endif()
foreach(page IN LISTS pages)
  cmake_path(GET page PARENT_PATH folder)
  file(READ ${page} text)
  string(REPLACE "](" "@link " text "${text}")
  string(REGEX REPLACE "[][;]" "" text "${text}")
  # A lambda of C++ looks like a link, but for the space in its arguments.
  string(REGEX MATCHALL "@link [^ )#:]+[)#]" links "${text}")
  foreach(link IN LISTS links)
    string(REGEX REPLACE "@link ([^ )#]+)[)#]" "\\1" target "${link}")
    if(NOT EXISTS ${folder}/${target})
      message(SEND_ERROR "${page} links to ${target}, which is not installed")
    endif()
  endforeach()
endforeach()

# By find_package.
file(WRITE ${SCRATCH}/package/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES C)
find_package(hstujit 0.1 CONFIG REQUIRED)
add_executable(example ${examples}/attention.c)
target_link_libraries(example PRIVATE hstujit::hstujit m)
")
run(COMMAND ${CMAKE_COMMAND} -S ${SCRATCH}/package -B ${SCRATCH}/package/build -DCMAKE_PREFIX_PATH=${all} -DCMAKE_C_COMPILER=${CC})
run(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH}/package/build)
check_example(${SCRATCH}/package/build/example)

# By pkg-config, after the tree was moved.
set(moved ${SCRATCH}/moved)
file(RENAME ${all} ${moved})
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} ${moved}/${LIBDIR}/pkgconfig)
  run(OUT flags COMMAND ${PKG_CONFIG} --cflags --libs hstujit)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(COMMAND ${CC} -std=c99 -O1 ${moved}/share/hstujit/examples/attention.c ${flags} -lm -Wl,-rpath,${moved}/${LIBDIR}
      -o ${SCRATCH}/by_pkg_config)
  check_example(${SCRATCH}/by_pkg_config)
  run(COMMAND ${CXX} -std=c++17 -O1 ${moved}/share/hstujit/examples/serve.cpp ${flags} -ldl -pthread
      -Wl,-rpath,${moved}/${LIBDIR} -o ${SCRATCH}/serve)
  run(OUT output COMMAND ${SCRATCH}/serve --backend host --requests 20 --config ${moved}/share/hstujit/examples/configs/serve.json)
  if(NOT output MATCHES "32 threads, 20 requests: ")
    message(SEND_ERROR "the installed serve.cpp says: ${output}")
  endif()
else()
  message(STATUS "there is no pkg-config here: hstujit.pc was not tried")
endif()

# The runtime alone, which serves what another machine has compiled, and compiles nothing itself.
set(serving ${SCRATCH}/serving)
install(${serving} runtime)
file(GLOB_RECURSE files RELATIVE ${serving} ${serving}/*)
foreach(file IN LISTS files)
  if(file MATCHES "_compiler|_host|worker|\\.h$|\\.c$|cmake|pkgconfig")
    message(SEND_ERROR "the component runtime has ${file}")
  endif()
endforeach()
file(WRITE ${SCRATCH}/config.json [=[{"version": 1, "ops": [{"name": "d64", "op": "hstu_attention", "heads": 4,
  "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 1024}]}]=])
set(prewarm prewarm --config ${SCRATCH}/config.json --arch sm_90a --cache-dir ${SCRATCH}/cache)
set(ENV{HSTUJIT_ON_MISS} fail)
run(OUT output CODE code COMMAND ${serving}/bin/hstujit ${prewarm})
if(code EQUAL 0)
  message(SEND_ERROR "with an empty cache the runtime alone says: ${output}")
endif()
unset(ENV{HSTUJIT_ON_MISS})
run(OUT output CODE code COMMAND ${moved}/bin/hstujit ${prewarm})
if(code EQUAL 3)
  message(STATUS "there is no NVRTC here: no cache was filled")
  return()
endif()
if(NOT code EQUAL 0 OR NOT output MATCHES "1 kernels?, 1 compiled, 0 hits")
  message(FATAL_ERROR "the whole installation ended with ${code}: ${output}")
endif()
set(ENV{HSTUJIT_ON_MISS} fail)
run(OUT output COMMAND ${serving}/bin/hstujit ${prewarm})
if(NOT output MATCHES "1 kernels?, 0 compiled, 1 hits?")
  message(SEND_ERROR "with a filled cache the runtime alone says: ${output}")
endif()
file(REMOVE_RECURSE ${SCRATCH})
