# MLIR and LLVM, linked in statically from archives named by path.
#
# The imported targets of MLIR's package are never linked: they draw in the shared libLLVM, whose type ids differ from
# those of hidden symbols. They are only asked which archives depend on which.
find_package(MLIR 22.1 QUIET CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
hstujit_require("MLIR and LLVM 22.1" "${MLIR_FOUND}")

set(HSTUJIT_LLVM_LIBRARY_DIR ${LLVM_LIBRARY_DIRS})
find_program(HSTUJIT_LLVM_CONFIG llvm-config PATHS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH)
hstujit_require("${LLVM_TOOLS_BINARY_DIR}/llvm-config" "${HSTUJIT_LLVM_CONFIG}")

# out = paths of the MLIR archives that `roots` need, themselves included.
function(hstujit_mlir_archives out)
  set(pending ${ARGN})
  set(seen)
  set(archives)
  while(pending)
    list(POP_FRONT pending name)
    if(name IN_LIST seen OR NOT name MATCHES "^MLIR[A-Z]")
      continue()
    endif()
    list(APPEND seen ${name})
    set(archive ${HSTUJIT_LLVM_LIBRARY_DIR}/lib${name}.a)
    if(EXISTS ${archive})
      list(APPEND archives ${archive})
    elseif(name IN_LIST ARGN)
      message(FATAL_ERROR "MLIR archive ${archive} is missing: tools/install-deps.sh installs libmlir-22-dev")
    endif()  # else a target of MLIR's build that only generates files
    if(TARGET ${name})
      get_target_property(links ${name} INTERFACE_LINK_LIBRARIES)
      string(REGEX REPLACE "\\$<LINK_ONLY:([A-Za-z0-9_]+)>" "\\1" links "${links}")
      list(APPEND pending ${links})
    endif()
  endwhile()
  set(${out} ${archives} PARENT_SCOPE)
endfunction()

# out = paths of the LLVM archives of the given llvm-config components.
function(hstujit_llvm_archives out)
  execute_process(COMMAND ${HSTUJIT_LLVM_CONFIG} --link-static --libfiles ${ARGN}
                  OUTPUT_VARIABLE files OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(files UNIX_COMMAND "${files}")
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# An interface library `name` that links a group of archives; the linker searches a group until nothing is missing.
function(hstujit_archive_group name)
  list(JOIN ARGN "," items)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE $<LINK_GROUP:RESCAN,${items}> Threads::Threads ${CMAKE_DL_LIBS} m)
endfunction()

add_library(hstujit_mlir_headers INTERFACE)
target_include_directories(hstujit_mlir_headers SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

# Archives that the dialect, the passes and the emitter use.
hstujit_mlir_archives(archives
  MLIRIR MLIRParser MLIRPass MLIRTransforms MLIRTransformUtils MLIRAnalysis MLIRArithDialect MLIRMathDialect MLIRFuncDialect
  MLIRInferIntRangeCommon MLIRInferIntRangeInterface)
hstujit_llvm_archives(llvm_archives support demangle)
hstujit_archive_group(hstujit_mlir ${archives} ${llvm_archives})
target_link_libraries(hstujit_mlir INTERFACE hstujit_mlir_headers)

# Archives that the host backend uses besides: lowering to LLVM, its optimiser, ORC.
if(HSTUJIT_BUILD_HOST)
  hstujit_mlir_archives(archives
    MLIRSCFDialect MLIRMemRefDialect MLIRVectorDialect MLIRLLVMDialect MLIRSCFToControlFlow MLIRArithToLLVM MLIRMathToLLVM
    MLIRMathToLibm MLIRMathTransforms MLIRArithTransforms MLIRFuncToLLVM MLIRControlFlowToLLVM MLIRIndexToLLVM MLIRMemRefToLLVM MLIRMemRefTransforms
    MLIRVectorToLLVM MLIRVectorToSCF MLIRReconcileUnrealizedCasts MLIRBuiltinToLLVMIRTranslation
    MLIRLLVMToLLVMIRTranslation MLIRTargetLLVMIRExport MLIRExecutionEngine MLIRExecutionEngineUtils MLIRAffineDialect
    MLIRAffineToStandard MLIRSCFTransforms MLIRSCFUtils)
  hstujit_llvm_archives(llvm_archives core support orcjit native passes ${LLVM_NATIVE_ARCH} analysis target perfjitevents)
  hstujit_archive_group(hstujit_mlir_host ${archives} ${llvm_archives})
  target_link_libraries(hstujit_mlir_host INTERFACE hstujit_mlir_headers hstujit_zlib hstujit_zstd rt)
endif()

# The headers are most of what a file costs. Passes and printers run seldom, and what takes long in them is in archives.
hstujit_add_precompiled(mlir LIBS hstujit_mlir_headers OPTIONS ${HSTUJIT_OPTIMISE_SIZE})

# Gives `target` the headers, the archives of the compiler's group and the precompiled header.
function(hstujit_use_mlir target)
  get_target_property(type ${target} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL "EXECUTABLE")
    set(scope PRIVATE)
  endif()
  target_link_libraries(${target} ${scope} hstujit_mlir)
  hstujit_use_precompiled(${target} mlir)
endfunction()
