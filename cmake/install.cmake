# Installs files in components: a machine that serves needs `runtime` alone.
#
#   runtime     libhstujit.so, libhstujit_bundle.so, shipped tuning records, the licence, the notices of what is linked
#               into them; the next three have theirs
#   operations  libhstujit_operations.so, the program with its manual page and completions, the worker process of the
#               tuner
#   compiler    libhstujit_compiler.so
#   host        libhstujit_host.so
#   torch       libhstujit_torch.so, for the Python package beside PyTorch
#   dev         headers, CMake package, pkg-config file, the schema of configs, examples, documentation
include(CMakePackageConfigHelpers)
include(notices)

# Builds what is installed, and neither tests nor benchmarks.
add_custom_target(hstujit_installation)
foreach(target IN ITEMS hstujit hstujit_bundle_library hstujit_operations_library hstujit_compiler hstujit_host_library hstujit_torch hstujit_tool hstujit_worker
        hstujit_pages hstujit_records)
  if(TARGET ${target})
    add_dependencies(hstujit_installation ${target})
  endif()
endforeach()

if(TARGET hstujit_bundle_library)
  install(TARGETS hstujit_bundle_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
endif()
if(TARGET hstujit_operations_library)
  install(TARGETS hstujit_operations_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT operations)
endif()
if(TARGET hstujit_compiler)
  install(TARGETS hstujit_compiler LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler)
endif()
if(TARGET hstujit_host_library)
  install(TARGETS hstujit_host_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT host)
endif()
if(TARGET hstujit_torch)
  install(TARGETS hstujit_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT torch)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hstujit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
if(TARGET hstujit_tool)
  install(TARGETS hstujit_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT operations)
  install(TARGETS hstujit_worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hstujit COMPONENT operations)
endif()

# The manual page and completions (the target hstujit_pages).
if(TARGET hstujit_pages)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT operations)
endif()

# The pages for users, which link to one another as in the repository. Of links to anything else, such as the pages for
# contributors, the text stays.
set(for_contributors "(architecture|adding-an-operator|generated-source|nightly|fuzzing|journal)")
file(GLOB pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/docs/*.md)
list(FILTER pages EXCLUDE REGEX "/${for_contributors}\\.md$")
foreach(page IN LISTS pages ITEMS README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${page})
  file(READ ${PROJECT_SOURCE_DIR}/${page} text)
  set(sources "(LICENSE|(bench|compiler|examples|include|templates)/[^)]*)")
  string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)?(${sources}|(docs/)?${for_contributors}\\.md[^)]*)\\)" "\\1" text "${text}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/pages/${page} CONTENT "${text}" @ONLY)
  cmake_path(GET page PARENT_PATH folder)
  install(FILES ${PROJECT_BINARY_DIR}/pages/${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT dev)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/images DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT dev)
# Configs of the examples name the schema as ../../hstujit.schema.json.
install(FILES ${PROJECT_SOURCE_DIR}/hstujit.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/hstujit COMPONENT dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/hstujit COMPONENT dev
        PATTERN __pycache__ EXCLUDE)

if(NOT TARGET hstujit)
  return()
endif()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hstujit)
install(TARGETS hstujit EXPORT hstujit
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
install(EXPORT hstujit NAMESPACE hstujit:: FILE hstujit-targets.cmake DESTINATION ${package} COMPONENT dev)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hstujit-config.cmake.in
                              ${PROJECT_BINARY_DIR}/hstujit-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hstujit-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hstujit-config.cmake ${PROJECT_BINARY_DIR}/hstujit-config-version.cmake
        DESTINATION ${package} COMPONENT dev)

# Read by the library after every cache directory; runtime/engine/shipped_records.h has the way there.
add_dependencies(hstujit hstujit_records hstujit_bundle_library)  # whoever builds the library alone can install it
install(DIRECTORY ${PROJECT_BINARY_DIR}/records DESTINATION ${CMAKE_INSTALL_DATADIR}/hstujit COMPONENT runtime)
set(shipped ${PROJECT_SOURCE_DIR}/autotune_cache/shipped)
install(FILES ${shipped}/README.md ${shipped}/common.json DESTINATION ${CMAKE_INSTALL_DATADIR}/hstujit/records
        COMPONENT runtime)

# The .pc file finds its prefix from where it lies, so that an installed tree may be moved.
file(RELATIVE_PATH HSTUJIT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/hstujit.pc.in ${PROJECT_BINARY_DIR}/hstujit.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hstujit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
