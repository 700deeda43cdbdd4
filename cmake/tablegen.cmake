# hstujit_tablegen_dialect(TARGET name TD file.td DIALECT name [ENUMS] [ATTRIBUTES] [TYPES] [INTERFACES])
#
# Generates, in the build folder that mirrors the caller's, from <stem>.td:
#   <stem>_dialect.{h,cpp}.inc  <stem>_ops.{h,cpp}.inc  and where asked for  <stem>_enums, <stem>_attributes, <stem>_types,
#   <stem>_interfaces (operation interfaces) .{h,cpp}.inc
# They are included as if they lay beside the .td: by its folder and <stem>_ops.h.inc. `TARGET` builds them; a library that
# includes them names it: add_dependencies(hstujit_ir <TARGET>).
find_program(HSTUJIT_TABLEGEN mlir-tblgen PATHS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH)
hstujit_require("${LLVM_TOOLS_BINARY_DIR}/mlir-tblgen" "${HSTUJIT_TABLEGEN}")

function(hstujit_tablegen_dialect)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "ENUMS;ATTRIBUTES;TYPES;INTERFACES" "TARGET;TD;DIALECT" "")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hstujit_tablegen_dialect(${ARG_TARGET}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  cmake_path(GET ARG_TD STEM stem)
  set(outputs)
  hstujit_tablegen_(dialect.h -gen-dialect-decls -dialect=${ARG_DIALECT})
  hstujit_tablegen_(dialect.cpp -gen-dialect-defs -dialect=${ARG_DIALECT})
  hstujit_tablegen_(ops.h -gen-op-decls)
  hstujit_tablegen_(ops.cpp -gen-op-defs)
  if(ARG_ENUMS)
    hstujit_tablegen_(enums.h -gen-enum-decls)
    hstujit_tablegen_(enums.cpp -gen-enum-defs)
  endif()
  if(ARG_ATTRIBUTES)
    hstujit_tablegen_(attributes.h -gen-attrdef-decls --attrdefs-dialect=${ARG_DIALECT})
    hstujit_tablegen_(attributes.cpp -gen-attrdef-defs --attrdefs-dialect=${ARG_DIALECT})
  endif()
  if(ARG_TYPES)
    hstujit_tablegen_(types.h -gen-typedef-decls --typedefs-dialect=${ARG_DIALECT})
    hstujit_tablegen_(types.cpp -gen-typedef-defs --typedefs-dialect=${ARG_DIALECT})
  endif()
  if(ARG_INTERFACES)
    hstujit_tablegen_(interfaces.h -gen-op-interface-decls)
    hstujit_tablegen_(interfaces.cpp -gen-op-interface-defs)
  endif()
  add_custom_target(${ARG_TARGET} DEPENDS ${outputs})
endfunction()

# One output of hstujit_tablegen_dialect: <stem>_<suffix>.inc; uses and extends the caller's variables.
macro(hstujit_tablegen_ suffix)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${stem}_${suffix}.inc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${HSTUJIT_TABLEGEN} ${ARGN} -I ${CMAKE_CURRENT_SOURCE_DIR} -I ${PROJECT_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS}
            ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_TD} -o ${output} -d ${output}.d
    DEPFILE ${output}.d
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_TD}
    COMMENT "Generating ${stem}_${suffix}.inc"
    VERBATIM)
  list(APPEND outputs ${output})
endmacro()
