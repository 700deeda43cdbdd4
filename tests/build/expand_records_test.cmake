# Lines of shipped records that cannot be installed: each fails the build with a sentence that names it.
#   cmake -DPROGRAM=<expand_records> -DRECORDS=<autotune_cache/shipped> -DSCRATCH=<folder> -P expand_records_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
file(READ ${RECORDS}/nvidia_h200.jsonl text)
string(FIND "${text}" "\n" end)
string(SUBSTRING "${text}" 0 ${end} line)
string(REGEX REPLACE "\"spread_us\":" "\"spread_us\":1" damaged "${line}")

function(expect what said content)
  file(WRITE ${SCRATCH}/${what}.jsonl "${content}")
  execute_process(COMMAND ${PROGRAM} ${SCRATCH}/${what} ${SCRATCH}/${what}.jsonl RESULT_VARIABLE code ERROR_VARIABLE error)
  if(NOT code EQUAL 1 OR NOT error MATCHES "${what}[.]jsonl:${said}\n$")
    message(SEND_ERROR "${what}: the program ended with ${code} and said: ${error}")
  endif()
endfunction()

expect(damaged "1: its checksum differs" "${damaged}\n")
expect(twice "2: an earlier line has the same key" "${line}\n${line}\n")
expect(empty "2: 1:1: malformed JSON.*" "${line}\n\n")
expect(other "1: it has no key" "{}\n")
