# The stores, as the live world has them: the same sources, compiled like everything else, with their calls
# renamed by a header (core/live/live_calls.h). They become one object of which only the table of stores shows
# (scenarios/live_stores.c), as the sim world's stores have the same names in the same program.
set(live_objects ${PROJECT_BINARY_DIR}/stores_live.o)
add_library(stores_live_raw OBJECT ${store_sources} scenarios/live_stores.c)
target_link_libraries(stores_live_raw PRIVATE tidemark_flags)
target_compile_options(stores_live_raw PRIVATE -O1 "SHELL:-include \"${PROJECT_SOURCE_DIR}/core/live/live_calls.h\"")
add_custom_command(OUTPUT ${live_objects}
	COMMAND ${BFD_LD} -r --force-group-allocation -o ${live_objects}.all $<TARGET_OBJECTS:stores_live_raw>
	COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=live_stores --keep-global-symbol=live_store_find
		--keep-global-symbol=live_store_add
		${live_objects}.all ${live_objects}
	DEPENDS stores_live_raw $<TARGET_OBJECTS:stores_live_raw> core/live/live_calls.h
	COMMAND_EXPAND_LISTS COMMENT "Linking the live stores into one object" VERBATIM)
add_library(stores_live STATIC ${live_objects})
set_target_properties(stores_live PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(stores_live INTERFACE tidemark_core)
