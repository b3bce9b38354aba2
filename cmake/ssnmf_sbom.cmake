# What is compiled into the modules, for the metadata of the wheel (PEP 770).

function(ssnmf_eigen_version result)
  get_target_property(folders Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  # A header of Eigen says its version in three macros.
  foreach(folder IN LISTS folders)
    set(header "${folder}/Eigen/src/Core/util/Macros.h")
    if(EXISTS "${header}")
      file(STRINGS "${header}" lines REGEX "^#define EIGEN_(WORLD|MAJOR|MINOR)_VERSION [0-9]+")
      list(TRANSFORM lines REPLACE "^.* ([0-9]+)$" "\\1")
      list(JOIN lines "." version)
    endif()
  endforeach()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

if(SKBUILD_METADATA_DIR)
  ssnmf_eigen_version(ssnmf_eigen_version)
  set(SSNMF_FAST_VERSION "${SKBUILD_PROJECT_VERSION_FULL}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/sbom.cdx.json.in" sbom.cdx.json @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/sbom.cdx.json" DESTINATION "${SKBUILD_METADATA_DIR}/sboms"
          RENAME ssnmf-fast.cdx.json)
endif()
