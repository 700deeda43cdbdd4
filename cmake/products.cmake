# The three shared libraries. The first loads the other two, from beside itself, only when they are needed.
if(TARGET hstujit_runtime)
  hstujit_shared_library(NAME hstujit EXPORTS "hstujit_*" ROOTS runtime)
  target_include_directories(hstujit INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(hstujit PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endif()
if(TARGET hstujit_driver)
  hstujit_shared_library(NAME hstujit_compiler EXPORTS "hstujit_compiler_*" ROOTS driver)
endif()
if(TARGET hstujit_host)
  hstujit_shared_library(NAME hstujit_host_library EXPORTS "hstujit_host_*" ROOTS host)
  set_target_properties(hstujit_host_library PROPERTIES OUTPUT_NAME hstujit_host)
endif()
