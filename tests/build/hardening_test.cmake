# How a library or a program is protected, and that it names no folder of the build: two clones in two folders make the
# same bytes.
#   cmake -DFILE= -DFOLDERS=<folders> -DPROGRAM=<bool> -DFORTIFIED=<bool> -DREADELF= -DNM= -P hardening_test.cmake
cmake_path(GET FILE FILENAME name)
execute_process(COMMAND ${READELF} -dlW ${FILE} OUTPUT_VARIABLE headers COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${NM} -D --undefined-only ${FILE} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)

# Relocated addresses are read-only before main() only if every function is bound by then.
if(NOT headers MATCHES "GNU_RELRO" OR NOT headers MATCHES "BIND_NOW")
  message(SEND_ERROR "${name} has no full RELRO; it is linked with -z relro -z now")
endif()
if(NOT headers MATCHES "GNU_STACK[ x0-9a-f]* RW ")
  message(SEND_ERROR "the stack of ${name} is executable")
endif()
if(PROGRAM AND NOT headers MATCHES "FLAGS_1[^\n]* PIE")
  message(SEND_ERROR "${name} has a fixed address; it is linked with -pie")
endif()
if(NOT symbols MATCHES "__stack_chk_fail")
  message(SEND_ERROR "no function of ${name} looks at its stack; it is compiled with -fstack-protector-strong")
endif()
if(FORTIFIED AND NOT symbols MATCHES "__(memcpy|snprintf)_chk")
  message(SEND_ERROR "${name} calls no function of _FORTIFY_SOURCE")
endif()

string(REGEX REPLACE "([][+.*^$()?|\\])" "\\\\\\1" folders "${FOLDERS}")
list(JOIN folders "|" folders)
file(STRINGS ${FILE} found REGEX "${folders}" LIMIT_COUNT 1)
if(found)
  message(SEND_ERROR "${name} names a folder of this build: ${found}")
endif()
