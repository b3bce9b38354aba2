# How the modules are compiled and linked.

# Compiled for each instruction-set level.
set(SSNMF_KERNEL_SOURCES
    ${PROJECT_SOURCE_DIR}/cpp/kernels/block_sizes.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/register_product.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/sparse_pass.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/row_pass.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/operations.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/entry_models.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/entry_losses.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/scatter_pass.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/sparse_loss.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/dense_pass.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/moments.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/factor_ops.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/imbalance.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/update.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/cholesky.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/nnls.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/kl_rows.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/kl_descent.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/coordinate_descent.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/iterations.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/completion_pass.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/ridge_rows.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/weighted_gram.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/tall_qr.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/tensor_pass.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/gamma_posterior.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/csr.cpp
    ${PROJECT_SOURCE_DIR}/cpp/kernels/fingerprint.cpp)

# Compiled once, for every processor.
set(SSNMF_CORE_SOURCES
    ${PROJECT_SOURCE_DIR}/cpp/core/interrupt.cpp ${PROJECT_SOURCE_DIR}/cpp/core/system_threads.cpp
    ${PROJECT_SOURCE_DIR}/cpp/core/thread_pool.cpp)
set(SSNMF_OPENMP_SOURCE ${PROJECT_SOURCE_DIR}/cpp/core/openmp_threads.cpp)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  find_package(OpenMP COMPONENTS CXX)
endif()
set(SSNMF_BINDING_SOURCES
    cpp/bindings/passes.cpp
    cpp/bindings/solvers.cpp
    cpp/bindings/iterations.cpp
    cpp/bindings/completion.cpp
    cpp/bindings/factors.cpp
    cpp/bindings/gamma.cpp
    cpp/bindings/csr.cpp
    cpp/bindings/fingerprint.cpp
    cpp/bindings/tall_qr.cpp
    cpp/bindings/tensors.cpp
    cpp/bindings/kernels.cpp)

# Warnings, and how far to optimize: 0, 1 or 3.
function(ssnmf_compile_options target optimize)
  if(ssnmf_msvc_options)
    # Large templates have more sections than the default format; names with _ are not deprecated.
    target_compile_options(${target} PRIVATE /W4 /bigobj /EHsc $<$<BOOL:${SSNMF_FAST_WERROR}>:/WX>)
    target_compile_definitions(${target} PRIVATE NOMINMAX _CRT_SECURE_NO_WARNINGS)
    if(optimize STREQUAL "3" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_options(${target} PRIVATE /clang:-O3)
    endif()
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -O${optimize}
                                           $<$<BOOL:${SSNMF_FAST_WERROR}>:-Werror>)
  # GCC 12 takes the undefined operands of its own AVX-512 intrinsics for uninitialized variables.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-uninitialized)
  endif()
endfunction()

# Eigen must not start threads of its own, and memory layouts must not depend on the level.  Square
# roots are rounded correctly: an estimate and a step from it (fast math) differ between vendors.
# Small products go the same way as large ones: by coefficients, bits would depend on where the
# result lies.  Threads may have stacks of 128 KiB, which musl gives by default.
function(ssnmf_use_eigen target)
  target_link_libraries(${target} PRIVATE Eigen3::Eigen)
  target_compile_definitions(
    ${target} PRIVATE EIGEN_DONT_PARALLELIZE EIGEN_MAX_ALIGN_BYTES=64 EIGEN_MPL2_ONLY
                      EIGEN_FAST_MATH=0 EIGEN_GEMM_TO_COEFFBASED_THRESHOLD=0
                      EIGEN_STACK_ALLOCATION_LIMIT=20480)
endfunction()

# Export the module's entry point alone: each level is a link of its own, since a linker would merge
# the same template compiled for two instruction sets.
function(ssnmf_hide_symbols target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(map "${PROJECT_SOURCE_DIR}/cmake/export.map")
    target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map}")
  endif()
endfunction()

# The bindings and the threads, which every level's module holds a copy of.
function(ssnmf_add_bindings)
  add_library(ssnmf_bindings OBJECT ${SSNMF_BINDING_SOURCES} ${SSNMF_CORE_SOURCES})
  set_target_properties(ssnmf_bindings PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(ssnmf_bindings PRIVATE pybind11::module Threads::Threads)
  ssnmf_compile_options(ssnmf_bindings 1)
  ssnmf_hide_symbols(ssnmf_bindings)
  # Most of the time goes into pybind11's headers.
  set_target_properties(ssnmf_bindings PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  set_source_files_properties(${SSNMF_CORE_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# The kernels of one instruction-set level.
function(ssnmf_add_kernel_objects level flags)
  set(target ssnmf_kernels_${level})
  add_library(${target} OBJECT ${SSNMF_KERNEL_SOURCES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PRIVATE Threads::Threads)
  ssnmf_compile_options(${target} 3)
  ssnmf_use_eigen(${target})
  target_precompile_headers(${target} PRIVATE <Eigen/Core>)
  ssnmf_hide_symbols(${target})
  target_compile_options(${target} PRIVATE ${flags})
endfunction()

# One module for one instruction-set level.  Kernels come first: of an inline function that the
# bindings have too the linker takes the first copy.
function(ssnmf_add_module level flags)
  set(target _kernels_${level})
  set(entry ssnmf_module_${level})
  add_library(${entry} OBJECT cpp/bindings/module.cpp)
  set_target_properties(${entry} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${entry} PRIVATE pybind11::module)
  ssnmf_compile_options(${entry} 0)
  ssnmf_hide_symbols(${entry})
  target_compile_definitions(
    ${entry}
    PRIVATE SSNMF_ENTRY=PyInit_${target} SSNMF_LEVEL="${level}"
            SSNMF_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
            SSNMF_FLAGS="-O3 ${flags}")
  pybind11_add_module(${target} MODULE NO_EXTRAS $<TARGET_OBJECTS:ssnmf_kernels_${level}>
                      $<TARGET_OBJECTS:${entry}> $<TARGET_OBJECTS:ssnmf_bindings>)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE Threads::Threads)
  ssnmf_hide_symbols(${target})
  install(TARGETS ${target} LIBRARY DESTINATION ssnmf_fast)
endfunction()

# A module that is compiled once: its sources follow its name.
function(ssnmf_add_small_module target)
  pybind11_add_module(${target} MODULE NO_EXTRAS ${ARGN})
  ssnmf_compile_options(${target} 1)
  ssnmf_hide_symbols(${target})
  install(TARGETS ${target} LIBRARY DESTINATION ssnmf_fast)
endfunction()

# The module that reads the processor's features.
function(ssnmf_add_cpu levels)
  list(TRANSFORM levels REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE quoted)
  list(JOIN quoted "," built)
  ssnmf_add_small_module(_cpu cpp/bindings/cpu.cpp)
  target_compile_definitions(_cpu PRIVATE "SSNMF_BUILT_LEVELS=${built}")
endfunction()

# The module of the threads of OpenMP, where the compiler has it.
function(ssnmf_add_openmp)
  if(OpenMP_CXX_FOUND)
    ssnmf_add_small_module(_openmp cpp/bindings/openmp.cpp ${SSNMF_OPENMP_SOURCE})
    target_link_libraries(_openmp PRIVATE OpenMP::OpenMP_CXX)
  endif()
endfunction()
