# Eigen's headers as an interface target Eigen3::Eigen.
#
# A given Eigen3_DIR (or an installed Eigen) comes first; then the wheel cmeel-eigen, a requirement
# of the build, so that an isolated build needs no system package.

# The version that a folder of headers says, in three macros: 3.4 in "Macros.h", as of the world, and 5
# in "Version", which that is no part of.
function(ssnmf_eigen_version folder result)
  set(header "${folder}/Eigen/Version")
  set(macros "MAJOR|MINOR|PATCH")
  if(NOT EXISTS "${header}")
    set(header "${folder}/Eigen/src/Core/util/Macros.h")
    set(macros "WORLD|MAJOR|MINOR")
  endif()
  file(STRINGS "${header}" lines REGEX "^#define EIGEN_(${macros})_VERSION [0-9]+")
  list(TRANSFORM lines REPLACE "^.* ([0-9]+)$" "\\1")
  list(JOIN lines "." version)
  if(version VERSION_LESS 3.4 OR version VERSION_GREATER_EQUAL 6)
    message(FATAL_ERROR "Eigen in ${folder} is version ${version}; 3.4 to 5 are taken.")
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# (Eigen's own check takes one major version alone, so that none is asked for.)
if(Eigen3_DIR)
  find_package(Eigen3 REQUIRED NO_MODULE)
  get_target_property(EIGEN_INCLUDE_DIR Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  list(GET EIGEN_INCLUDE_DIR 0 EIGEN_INCLUDE_DIR)
  ssnmf_eigen_version("${EIGEN_INCLUDE_DIR}" ssnmf_eigen_version)
  return()
endif()

if(Python_EXECUTABLE)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import pathlib, sysconfig; print(pathlib.Path(sysconfig.get_path('purelib'), 'cmeel.prefix').as_posix())"
    OUTPUT_VARIABLE cmeel_prefix
    OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
# Build front ends put the requirements of an isolated build on PYTHONPATH.
set(candidates "${cmeel_prefix}")
cmake_path(CONVERT "$ENV{PYTHONPATH}" TO_CMAKE_PATH_LIST python_path)
foreach(folder IN LISTS python_path)
  list(APPEND candidates "${folder}/cmeel.prefix")
endforeach()
foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
  list(APPEND candidates "${prefix}" "${prefix}/cmeel.prefix")
endforeach()
list(TRANSFORM candidates APPEND "/include/eigen3" OUTPUT_VARIABLE include_candidates)
find_path(EIGEN_INCLUDE_DIR Eigen/Core HINTS ${include_candidates} PATH_SUFFIXES eigen3)
if(NOT EIGEN_INCLUDE_DIR)
  message(FATAL_ERROR "Eigen not found: pip install cmeel-eigen, or set Eigen3_DIR.")
endif()
ssnmf_eigen_version("${EIGEN_INCLUDE_DIR}" ssnmf_eigen_version)
# A copy in the build folder, where files change with their contents alone: the folder of an isolated
# build is a new one each time, and all would be compiled again.
set(headers "${PROJECT_BINARY_DIR}/eigen3")
file(GLOB_RECURSE found RELATIVE "${EIGEN_INCLUDE_DIR}" "${EIGEN_INCLUDE_DIR}/Eigen/*")
foreach(header IN LISTS found)
  get_filename_component(folder "${headers}/${header}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(COPY_FILE "${EIGEN_INCLUDE_DIR}/${header}" "${headers}/${header}" ONLY_IF_DIFFERENT)
endforeach()
add_library(Eigen3::Eigen INTERFACE IMPORTED)
set_target_properties(Eigen3::Eigen PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${headers}"
                      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${headers}")
