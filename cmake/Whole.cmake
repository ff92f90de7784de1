# tidemark with its libraries optimised as a whole: what a crash state costs is spread over many small functions in many
# files. The stores are not part of it, so that one object (cmake/whole) is made of the libraries and kept while a store or
# the command line is edited. Objects for that contain no machine code; the libraries that tests link are others.
set(whole ${PROJECT_BINARY_DIR}/tidemark_whole.o)
foreach(library core sim)
	add_library(tidemark_${library}_lto OBJECT ${${library}_sources})
	target_compile_options(tidemark_${library}_lto PRIVATE -flto -fno-fat-lto-objects)
	target_link_libraries(tidemark_${library}_lto PRIVATE tidemark_flags ${core_needs} ${sim_needs})
endforeach()

# The rest of the program. Optimised dependencies: these archives do not need the other libraries to be made.
set_target_properties(stores_live verbs_programs PROPERTIES OPTIMIZE_DEPENDENCIES ON)
set(callers $<TARGET_OBJECTS:tidemark_cli> ${stores_archive} $<TARGET_FILE:stores_live> $<TARGET_FILE:verbs_programs>)
add_custom_command(OUTPUT ${whole}.needs
	COMMAND ${PROJECT_SOURCE_DIR}/cmake/whole needs ${CMAKE_NM} ${whole}.needs ${callers}
	DEPENDS cmake/whole tidemark_cli stores_renamed stores_live verbs_programs ${callers}
	COMMAND_EXPAND_LISTS COMMENT "Listing what the program needs of its libraries" VERBATIM)
set(whole_objects $<TARGET_OBJECTS:tidemark_core_lto> $<TARGET_OBJECTS:tidemark_sim_lto>)
add_custom_command(OUTPUT ${whole}
	COMMAND ${PROJECT_SOURCE_DIR}/cmake/whole link ${CMAKE_C_COMPILER} ${CMAKE_LINKER} ${whole} ${whole}.needs @${PROJECT_BINARY_DIR}/sdk/exported.needs ${whole_objects}
	DEPENDS cmake/whole ${PROJECT_BINARY_DIR}/sdk/exported.needs tidemark_core_lto tidemark_sim_lto ${whole}.needs ${whole_objects}
	COMMAND_EXPAND_LISTS COMMENT "Optimising the libraries as a whole" VERBATIM)
add_custom_target(tidemark_whole DEPENDS ${whole})
add_dependencies(tidemark tidemark_whole)
target_link_libraries(tidemark PRIVATE ${whole} ${stores_archive} $<TARGET_FILE:stores_live> $<TARGET_FILE:verbs_programs>
	${core_needs} ${sim_needs})
set_property(TARGET tidemark APPEND PROPERTY LINK_DEPENDS ${whole} ${stores_archive} $<TARGET_FILE:stores_live>
	$<TARGET_FILE:verbs_programs>)
