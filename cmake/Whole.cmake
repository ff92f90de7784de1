# tidemark with its hot sources optimised as a whole: what a crash state costs is spread over many small functions in many
# files. One object (cmake/whole) is made of them and kept while a store, the command line or another source is edited.
# Objects for that contain no machine code; the libraries that tests link are others.
set(whole ${PROJECT_BINARY_DIR}/tidemark_whole.o)
add_library(tidemark_lto OBJECT ${hot_sources})
target_compile_options(tidemark_lto PRIVATE -flto -fno-fat-lto-objects)
target_link_libraries(tidemark_lto PRIVATE tidemark_flags ${core_needs} ${sim_needs})
add_library(tidemark_cool OBJECT ${cool_sources})
target_link_libraries(tidemark_cool PRIVATE tidemark_flags ${core_needs} ${sim_needs})

# The rest of the program. Optimised dependencies: these archives do not need the other libraries to be made.
set_target_properties(stores_live verbs_programs PROPERTIES OPTIMIZE_DEPENDENCIES ON)
set(callers $<TARGET_OBJECTS:tidemark_cli> $<TARGET_OBJECTS:tidemark_cool> ${stores_archive} $<TARGET_FILE:stores_live> $<TARGET_FILE:verbs_programs>)
add_custom_command(OUTPUT ${whole}.needs
	COMMAND ${PROJECT_SOURCE_DIR}/cmake/whole needs ${CMAKE_NM} ${whole}.needs ${callers}
	DEPENDS cmake/whole tidemark_cli tidemark_cool stores_renamed stores_live verbs_programs ${callers}
	COMMAND_EXPAND_LISTS COMMENT "Listing what the program needs of its libraries" VERBATIM)
set(whole_objects $<TARGET_OBJECTS:tidemark_lto>)
add_custom_command(OUTPUT ${whole}
	COMMAND ${PROJECT_SOURCE_DIR}/cmake/whole link ${CMAKE_C_COMPILER} ${CMAKE_LINKER} ${whole} ${whole}.needs @${PROJECT_BINARY_DIR}/sdk/exported.needs ${whole_objects}
	DEPENDS cmake/whole ${PROJECT_BINARY_DIR}/sdk/exported.needs tidemark_lto ${whole}.needs ${whole_objects}
	COMMAND_EXPAND_LISTS COMMENT "Optimising the hot sources as a whole" VERBATIM)
add_custom_target(tidemark_whole DEPENDS ${whole})
add_dependencies(tidemark tidemark_whole)
target_link_libraries(tidemark PRIVATE $<TARGET_OBJECTS:tidemark_cool> ${whole} ${stores_archive} $<TARGET_FILE:stores_live> $<TARGET_FILE:verbs_programs>
	${core_needs} ${sim_needs})
set_property(TARGET tidemark APPEND PROPERTY LINK_DEPENDS ${whole} ${stores_archive} $<TARGET_FILE:stores_live>
	$<TARGET_FILE:verbs_programs>)
