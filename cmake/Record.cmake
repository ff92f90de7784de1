# What records a program's PM (tidemark record): a library to be preloaded, before the soft RNIC's.
file(GLOB record_sources CONFIGURE_DEPENDS core/record/*.c)
add_library(tidemark_record SHARED ${record_sources} core/instruction.c)
set_target_properties(tidemark_record PROPERTIES OUTPUT_NAME tidemark-record C_VISIBILITY_PRESET hidden
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
# Never with sanitizers: it is in programs of others. It stays until the process ends.
# As it is always there when a program starts, its threads' variables need no look-up.
target_compile_options(tidemark_record PRIVATE -O2 -ftls-model=initial-exec -Wall -Wextra $<$<BOOL:${TIDEMARK_WERROR}>:-Werror>)
target_link_options(tidemark_record PRIVATE -Wl,-z,defs -Wl,-z,nodelete)
target_link_libraries(tidemark_record PRIVATE pthread dl)
add_dependencies(tidemark tidemark_record)
# In the place of libtsan.so.2 for programs that gcc has compiled with -fsanitize=thread: it tells of each store.
add_library(tidemark_record_exact SHARED core/record/exact/stores.c)
set_target_properties(tidemark_record_exact PROPERTIES OUTPUT_NAME tsan SOVERSION 2 C_VISIBILITY_PRESET hidden
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/record SKIP_BUILD_RPATH ON) # the other library is there before it
target_compile_options(tidemark_record_exact PRIVATE -O2 -Wall -Wextra $<$<BOOL:${TIDEMARK_WERROR}>:-Werror>)
add_dependencies(tidemark tidemark_record_exact)
