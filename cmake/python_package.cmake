# Two components for scikit-build-core (pyproject.toml), which installs them into the Python package:
#
#   stubs     type stubs of the operators, which the library itself describes
#   editable  editable.prefix: the folder of the build, whose libraries an editable installation uses
set(sources ${PROJECT_SOURCE_DIR}/python/hstujit)
set(stubs ${PROJECT_BINARY_DIR}/stubs)
file(GLOB modules CONFIGURE_DEPENDS ${sources}/*.py)
# -S: neither the packages nor the editable installations of this Python come before the package of this folder.
add_custom_command(
  OUTPUT ${stubs}/__init__.pyi ${stubs}/operators.pyi
  COMMAND ${CMAKE_COMMAND} -E make_directory ${stubs}
  COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_SOURCE_DIR}/python PYTHONDONTWRITEBYTECODE=1
          LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hstujit> ${Python_EXECUTABLE} -S ${PROJECT_SOURCE_DIR}/tools/python_stubs.py ${stubs}
  DEPENDS hstujit ${modules} ${PROJECT_SOURCE_DIR}/tools/python_stubs.py
  COMMENT "Type stubs of the Python package"
  VERBATIM)
add_custom_target(hstujit_stubs DEPENDS ${stubs}/__init__.pyi ${stubs}/operators.pyi)
add_dependencies(hstujit_installation hstujit_stubs)
install(DIRECTORY ${stubs}/ DESTINATION . COMPONENT stubs)

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/editable.prefix CONTENT "${PROJECT_BINARY_DIR}\n")
install(FILES ${PROJECT_BINARY_DIR}/editable.prefix DESTINATION . COMPONENT editable)
