# cmake -D program=... -D expected=... -P compare.cmake: runs the program and compares what it prints with the expected file.
# The file's own marker lines are skipped; numbers that depend on the width of the machine's SIMD registers count as equal.
function(normalise text result)
  string(REGEX REPLACE "[^\n]*\\[/?doc:[^\n]*\n" "" text "${text}")
  string(REGEX REPLACE "packs of [0-9]+" "packs of W" text "${text}")
  string(REGEX REPLACE "strips of [0-9]+ x [0-9]+" "strips of P x W" text "${text}")
  string(REGEX REPLACE "off by [0-9.e+-]+" "off by E" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

execute_process(COMMAND ${program} OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
file(READ ${expected} wanted)
normalise("${printed}" got)
normalise("${wanted}" wanted)
if(NOT got STREQUAL wanted)
  message(FATAL_ERROR "${program} prints something else than ${expected} holds. It prints:\n${printed}")
endif()
