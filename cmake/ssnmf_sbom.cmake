# What is compiled into the modules, for the metadata of the wheel (PEP 770).

if(SKBUILD_METADATA_DIR)
  set(SSNMF_FAST_VERSION "${SKBUILD_PROJECT_VERSION_FULL}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/sbom.cdx.json.in" sbom.cdx.json @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/sbom.cdx.json" DESTINATION "${SKBUILD_METADATA_DIR}/sboms"
          RENAME ssnmf-fast.cdx.json)
endif()
