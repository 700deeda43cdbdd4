# hstujit_embed_templates(OUT file): a C++ source with every templates/**/*.cuh. Changing, adding or removing a template
# generates the file anew.
function(hstujit_embed_templates)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "OUT" "")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/templates/*.cuh)
  list(SORT files)
  add_custom_command(
    OUTPUT ${ARG_OUT}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/templates -DOUT=${ARG_OUT} "-DFILES=${files}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_templates_script.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed_templates_script.cmake
    COMMENT "Embedding templates"
    VERBATIM)
endfunction()
