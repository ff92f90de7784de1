# What `tidemark images` brings into a checker: a library to be preloaded, and a program that calls a checker that is a
# library. They are in the programs of others, so they have no sanitizer, and no checks of libc's functions, which the
# library defines itself. What they call is bound before children are forked, so that none of them has to.
set(images_flags -Wall -Wextra $<$<BOOL:${TIDEMARK_WERROR}>:-Werror> -U_FORTIFY_SOURCE)
add_library(tidemark_images SHARED checker/seat/preload/preload.c checker/seat/preload/serve.c
	checker/seat/preload/maps.c checker/seat/preload/mutexes.c checker/seat/preload/ndctl.c)
set_target_properties(tidemark_images PROPERTIES OUTPUT_NAME tidemark-images C_VISIBILITY_PRESET hidden
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} LINK_OPTIONS "-Wl,-z,defs;-Wl,-z,nodelete;-Wl,-z,now")
target_compile_options(tidemark_images PRIVATE ${images_flags})
target_link_libraries(tidemark_images PRIVATE ${CMAKE_DL_LIBS})

add_executable(tidemark_images_caller checker/seat/preload/caller.c checker/seat/calls.c)
set_target_properties(tidemark_images_caller PROPERTIES OUTPUT_NAME tidemark-images-caller)
target_compile_options(tidemark_images_caller PRIVATE ${images_flags})
target_link_libraries(tidemark_images_caller PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(tidemark tidemark_images tidemark_images_caller)
