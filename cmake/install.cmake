# Libraries side by side, headers, the tool, and the two ways in which other builds find them.
include(CMakePackageConfigHelpers)

foreach(target hstujit_compiler hstujit_host_library)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${target})
  endif()
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hstujit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT hstujit)
if(TARGET hstujit_tool)
  file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(hstujit_tool PROPERTIES INSTALL_RPATH $ORIGIN/${to_libraries})
  install(TARGETS hstujit_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT hstujit)
  file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_LIBEXECDIR}/hstujit ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(hstujit_worker PROPERTIES INSTALL_RPATH $ORIGIN/${to_libraries})
  install(TARGETS hstujit_worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hstujit COMPONENT hstujit)
endif()

if(NOT TARGET hstujit)
  return()
endif()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hstujit)
install(TARGETS hstujit EXPORT hstujit
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT hstujit NAMELINK_COMPONENT development)
install(EXPORT hstujit NAMESPACE hstujit:: FILE hstujit-targets.cmake DESTINATION ${package} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hstujit-config.cmake.in
                              ${PROJECT_BINARY_DIR}/hstujit-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hstujit-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hstujit-config.cmake ${PROJECT_BINARY_DIR}/hstujit-config-version.cmake
        DESTINATION ${package} COMPONENT development)

# Read by the library after every cache directory; runtime/shipped_records.h has the way there.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/autotune_cache/records DESTINATION ${CMAKE_INSTALL_DATADIR}/hstujit
        COMPONENT hstujit)

# The .pc file finds its prefix from where it lies, so that an installed tree may be moved.
file(RELATIVE_PATH HSTUJIT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/hstujit.pc.in ${PROJECT_BINARY_DIR}/hstujit.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hstujit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
