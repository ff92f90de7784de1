# The soft RNIC as a provider for other people's programs: core/rnic and core/nic in one shared library that shows
# libibverbs' functions, to be preloaded (tidemark run).
file(GLOB nic_sources CONFIGURE_DEPENDS core/nic/*.c core/rnic/*.c)
list(REMOVE_ITEM nic_sources ${PROJECT_SOURCE_DIR}/core/rnic/link_sim.c)
list(APPEND nic_sources core/pmem/hardware.c)
add_library(tidemark_preload SHARED ${nic_sources})
set_target_properties(tidemark_preload PROPERTIES OUTPUT_NAME tidemark-verbs C_VISIBILITY_PRESET hidden
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(tidemark_preload PRIVATE tidemark_flags PkgConfig::ISAL pthread)
target_link_options(tidemark_preload PRIVATE -Wl,-z,defs)
install(TARGETS tidemark_preload LIBRARY DESTINATION lib/tidemark)

# What of it the command line needs, too: settings, rules of faults, the net's directory.
set(nic_shared core/nic/config.c core/nic/faults.c core/nic/net_dir.c)
target_sources(tidemark PRIVATE ${nic_shared})
# A message passes many small functions of many files.
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT TIDEMARK_SANITIZE)
	target_compile_options(tidemark_preload PRIVATE -flto)
	# In place of the -fno-lto that other programs get.
	set_target_properties(tidemark_preload PROPERTIES LINK_OPTIONS "-flto=auto;-Wl,-z,defs")
endif()
