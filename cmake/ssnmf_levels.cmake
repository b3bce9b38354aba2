# The instruction-set levels to build, in ssnmf_levels, and their compiler flags, in flags_<level>.

set(SSNMF_FAST_LEVELS
    "native"
    CACHE STRING "Instruction-set levels: native (the best of this machine), all, or a list")

# The processor that is compiled for, which in a cross build, or by CMAKE_OSX_ARCHITECTURES, is not
# the one at hand.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles(
  "#if !defined(__x86_64__) && !defined(_M_X64)
   #error
   #endif
   int main() { return 0; }" SSNMF_FAST_X86_64)

set(flags_base "")
set(known_levels base)
if(SSNMF_FAST_X86_64)
  list(APPEND known_levels v3 v4)
  set(flags_v3 "-march=x86-64-v3")
  set(flags_v4 "-march=x86-64-v4")
  if(ssnmf_msvc_options AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(flags_v3 "/clang:${flags_v3}")
    set(flags_v4 "/clang:${flags_v4}")
  elseif(ssnmf_msvc_options)
    set(flags_v3 "/arch:AVX2")
    set(flags_v4 "/arch:AVX512")
  endif()
endif()

function(ssnmf_best_level result)
  try_run(status compiled "${CMAKE_BINARY_DIR}/best_level"
          "${PROJECT_SOURCE_DIR}/cmake/best_level.cpp" RUN_OUTPUT_VARIABLE best)
  if(NOT compiled OR NOT status EQUAL 0 OR NOT best IN_LIST known_levels)
    message(STATUS "Which level is the best of this machine cannot be told: building all.")
    set(best ${known_levels})
  endif()
  set(${result} "${best}" PARENT_SCOPE)
endfunction()

if(SSNMF_FAST_LEVELS STREQUAL "all" OR (SSNMF_FAST_LEVELS STREQUAL "native" AND CMAKE_CROSSCOMPILING))
  set(ssnmf_levels ${known_levels})
elseif(SSNMF_FAST_LEVELS STREQUAL "native")
  ssnmf_best_level(ssnmf_levels)
else()
  set(ssnmf_levels ${SSNMF_FAST_LEVELS})
  foreach(level IN LISTS ssnmf_levels)
    if(NOT level IN_LIST known_levels)
      message(FATAL_ERROR "SSNMF_FAST_LEVELS is \"${SSNMF_FAST_LEVELS}\"; expected native, all, or a "
                          "list of ${known_levels}.")
    endif()
  endforeach()
endif()
message(STATUS "Instruction-set levels: ${ssnmf_levels}")
