# How the modules are compiled and linked.

set(SSNMF_KERNEL_SOURCES
    cpp/core/interrupt.cpp
    cpp/core/thread_pool.cpp
    cpp/kernels/gemm.cpp
    cpp/bindings/csr.cpp
    cpp/bindings/scatter_passes.cpp
    cpp/bindings/sparse_passes.cpp
    cpp/bindings/sparse_losses.cpp
    cpp/bindings/dense.cpp
    cpp/bindings/factors.cpp
    cpp/bindings/solvers.cpp
    cpp/bindings/completion.cpp
    cpp/bindings/tall_qr.cpp
    cpp/bindings/gamma.cpp
    cpp/bindings/module.cpp)

function(ssnmf_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion)
  # GCC 12 takes the undefined operands of its own AVX-512 intrinsics for uninitialised variables.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-uninitialized)
  endif()
  if(SSNMF_FAST_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# Eigen must not start threads of its own, and memory layouts must not depend on the level.
function(ssnmf_use_eigen target)
  target_link_libraries(${target} PRIVATE Eigen3::Eigen)
  target_compile_definitions(${target} PRIVATE EIGEN_DONT_PARALLELIZE EIGEN_MAX_ALIGN_BYTES=64
                                               EIGEN_MPL2_ONLY)
endfunction()

# Export the module's entry point alone: each level is a link of its own, since a linker would merge
# the same template compiled for two instruction sets.
function(ssnmf_hide_symbols target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(map "${CMAKE_CURRENT_SOURCE_DIR}/cmake/export.map")
    target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map}")
  endif()
endfunction()

# One module for one instruction-set level, from the same sources.
function(ssnmf_add_kernels level flags)
  set(target _kernels_${level})
  pybind11_add_module(${target} MODULE NO_EXTRAS ${SSNMF_KERNEL_SOURCES})
  ssnmf_compile_options(${target})
  ssnmf_use_eigen(${target})
  # Threads are our own (cpp/core/thread_pool.cpp); OpenMP is asked how many there may be.
  target_link_libraries(${target} PRIVATE Threads::Threads OpenMP::OpenMP_CXX)
  ssnmf_hide_symbols(${target})
  target_compile_options(${target} PRIVATE -O3 ${flags})
  target_compile_definitions(
    ${target}
    PRIVATE SSNMF_MODULE=${target} SSNMF_LEVEL="${level}"
            SSNMF_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
            SSNMF_FLAGS="-O3 ${flags}")
  install(TARGETS ${target} LIBRARY DESTINATION ssnmf_fast)
endfunction()

# The module that reads the processor's features.
function(ssnmf_add_cpu levels)
  list(TRANSFORM levels REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE quoted)
  list(JOIN quoted "," built)
  pybind11_add_module(_cpu MODULE NO_EXTRAS cpp/bindings/cpu.cpp)
  ssnmf_compile_options(_cpu)
  ssnmf_hide_symbols(_cpu)
  target_compile_definitions(_cpu PRIVATE "SSNMF_BUILT_LEVELS=${built}")
  install(TARGETS _cpu LIBRARY DESTINATION ssnmf_fast)
endfunction()
