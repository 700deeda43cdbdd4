# The layers, from left to right, and what each may use. A folder never uses what stands to its right.
#
# hstujit_library checks the DEPS of each target against this table at configure time; check_includes.cmake, run as a
# test, checks every #include of a layer against its DEPS.

set(HSTUJIT_LAYERS support generator expression spec plan templates skeletons bundle cache ir passes emit nvrtc driver host runtime operations
    tools)

set(HSTUJIT_FOLDER_support compiler/support)
set(HSTUJIT_FOLDER_generator compiler/generator)
set(HSTUJIT_FOLDER_expression compiler/expression)
set(HSTUJIT_FOLDER_spec compiler/spec)
set(HSTUJIT_FOLDER_plan compiler/plan)
set(HSTUJIT_FOLDER_templates templates)
set(HSTUJIT_FOLDER_skeletons templates)
set(HSTUJIT_FOLDER_bundle autotune_cache/bundle/library)
set(HSTUJIT_FOLDER_cache autotune_cache)
set(HSTUJIT_FOLDER_ir compiler/ir)
set(HSTUJIT_FOLDER_passes compiler/passes)
set(HSTUJIT_FOLDER_emit compiler/emit)
set(HSTUJIT_FOLDER_nvrtc compiler/nvrtc)
set(HSTUJIT_FOLDER_driver compiler/driver)
set(HSTUJIT_FOLDER_host compiler/host)
set(HSTUJIT_FOLDER_runtime runtime)
set(HSTUJIT_FOLDER_operations operations)
set(HSTUJIT_FOLDER_tools tools)

set(HSTUJIT_ALLOWED_support)
set(HSTUJIT_ALLOWED_generator support)
set(HSTUJIT_ALLOWED_expression support)
set(HSTUJIT_ALLOWED_spec support expression)
set(HSTUJIT_ALLOWED_plan support spec skeletons)
set(HSTUJIT_ALLOWED_templates support)
set(HSTUJIT_ALLOWED_skeletons support expression spec plan)
set(HSTUJIT_ALLOWED_bundle support)
set(HSTUJIT_ALLOWED_cache support)
set(HSTUJIT_ALLOWED_ir support expression spec plan)
set(HSTUJIT_ALLOWED_passes support spec plan ir)
set(HSTUJIT_ALLOWED_emit support spec plan templates skeletons ir passes)
set(HSTUJIT_ALLOWED_nvrtc support plan)
set(HSTUJIT_ALLOWED_driver support generator spec plan templates skeletons ir passes emit nvrtc)
set(HSTUJIT_ALLOWED_host support generator spec plan ir passes)
set(HSTUJIT_ALLOWED_runtime support generator spec plan templates skeletons cache)
set(HSTUJIT_ALLOWED_operations support generator spec plan templates skeletons cache runtime)
set(HSTUJIT_ALLOWED_tools support)

# The folders of a layer where they have an order, too: a file includes headers of its own folder and of those before it.
set(HSTUJIT_PARTS_cache files records choice bundle store remote)
set(HSTUJIT_PARTS_runtime driver launch engine dispatch capi)
set(HSTUJIT_PARTS_operations tuning/data tuning/timing tuning/worker tuning/tuner configs api)

# Linked but not included: plan declares skeletons(), the generated table of the build defines it.
set(HSTUJIT_LINK_ONLY_plan skeletons)

# Headers that describe a boundary between products: the other side of it may include them.
set(HSTUJIT_BOUNDARY_HEADERS autotune_cache/bundle/library/bundle_api.h compiler/driver/compiler_api.h
    compiler/host/host_api.h operations/api/operations_api.h operations/api/worker_api.h)

# Fails the configuration unless layer `name` may use every layer of the remaining arguments.
function(hstujit_check_layer name)
  if(NOT name IN_LIST HSTUJIT_LAYERS)
    message(FATAL_ERROR "hstujit_library: \"${name}\" is not a layer; cmake/layers.cmake lists them: ${HSTUJIT_LAYERS}")
  endif()
  foreach(dep IN LISTS ARGN)
    if(NOT dep IN_LIST HSTUJIT_ALLOWED_${name})
      message(FATAL_ERROR "hstujit_library: layer \"${name}\" may not use \"${dep}\"; it may use: ${HSTUJIT_ALLOWED_${name}}")
    endif()
  endforeach()
endfunction()

macro(hstujit_add_layers)
  foreach(folder ${ARGN})
    add_subdirectory(${folder})
  endforeach()
endmacro()

# Writes the DEPS that the layers of this build declared, for check_includes.cmake.
function(hstujit_declared_deps out)
  get_property(layers GLOBAL PROPERTY HSTUJIT_LAYERS_BUILT)
  set(text "# Generated: the DEPS of each hstujit_library of this build.\n")
  foreach(layer IN LISTS layers)
    get_property(deps GLOBAL PROPERTY HSTUJIT_DEPS_${layer})
    string(APPEND text "set(HSTUJIT_DEPS_${layer} \"${deps}\")\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
endfunction()
