# What is installed (`make install`, `make deb`), and where. The program finds its files relative to itself
# (find_beside(), cli/sdk.c), and so does tidemark.pc: an installation can be copied to another place.
#
# bin/tidemark                   the program, with its debug information: reports name source lines by it
# bin/tidemark-pmreorder         pmreorder's command line for `tidemark images`
# lib/tidemark                   the soft RNIC: a library to preload; in lib/ the same in place of the system's; what
#                                `tidemark images` brings into a checker
# lib/tidemark/sdk               what `tidemark cc` needs
# bin/tidemark-valgrind, lib/tidemark/valgrind  the Valgrind tool, where it was built
# include/tidemark               the headers that a store, or a program that is recorded, includes
# share/pkgconfig/tidemark.pc
# share/man                      pages for the program, each of its commands, and the store interface
# share/bash-completion, share/zsh
# share/doc/tidemark             README.md, docs/, examples
set(tidemark_lib lib/tidemark)
install(TARGETS tidemark RUNTIME DESTINATION bin)
install(TARGETS tidemark_preload tidemark_record tidemark_images LIBRARY DESTINATION ${tidemark_lib})
install(TARGETS tidemark_record_exact LIBRARY DESTINATION ${tidemark_lib}/record NAMELINK_SKIP)
install(PROGRAMS cli/tidemark-pmreorder DESTINATION bin)
configure_file(cli/tidemark-pmreorder tidemark-pmreorder COPYONLY)
install(TARGETS tidemark_images_caller RUNTIME DESTINATION ${tidemark_lib})
install(TARGETS tidemark_libibverbs tidemark_librdmacm LIBRARY DESTINATION ${tidemark_lib}/lib NAMELINK_SKIP)

if(TIDEMARK_VALGRIND)
	install(PROGRAMS ${PROJECT_BINARY_DIR}/tidemark-valgrind DESTINATION bin)
	install(DIRECTORY ${valgrind_tools} DESTINATION ${tidemark_lib} USE_SOURCE_PERMISSIONS)
endif()

install(DIRECTORY ${sdk}/include/tidemark DESTINATION include PATTERN object.h EXCLUDE) # not for stores
# All of it, for `tidemark cc`.
install(DIRECTORY ${sdk} DESTINATION ${tidemark_lib} USE_SOURCE_PERMISSIONS)

configure_file(cmake/tidemark.pc.in tidemark.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tidemark.pc DESTINATION share/pkgconfig)

# A page for each command, made of what the program says of itself. Their names are known when it has been built.
set(manuals ${PROJECT_BINARY_DIR}/man)
set(store_manual docs/own-store.md docs/own-operations.md core/tidemark.h core/calls.h core/rt/rt.h)
add_custom_command(OUTPUT ${manuals}/man1/tidemark.1
	COMMAND ${CMAKE_COMMAND} -E rm -rf ${manuals}
	COMMAND ${PROJECT_SOURCE_DIR}/scripts/man $<TARGET_FILE:tidemark> ${manuals} ${PROJECT_VERSION} ${TIDEMARK_DATE}
	DEPENDS tidemark scripts/man cli/tidemark-pmreorder ${store_manual}
	WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "Writing the manual pages" VERBATIM)
add_custom_target(manuals ALL DEPENDS ${manuals}/man1/tidemark.1)
install(DIRECTORY ${manuals}/ DESTINATION share/man)

# One completion: zsh has it by bashcompinit.
install(FILES cli/tidemark-completion.bash DESTINATION share/bash-completion/completions RENAME tidemark)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cli/tidemark-completion.bash)
file(READ cli/tidemark-completion.bash completion)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/completion/_tidemark @ONLY CONTENT
	"#compdef tidemark\nautoload -U +X bashcompinit && bashcompinit\n${completion}_bash_complete -o bashdefault -o default -F _tidemark\n")
install(FILES ${PROJECT_BINARY_DIR}/completion/_tidemark DESTINATION share/zsh/site-functions)

set(tidemark_doc share/doc/tidemark)
install(FILES README.md LICENSE DESTINATION ${tidemark_doc})
install(DIRECTORY docs DESTINATION ${tidemark_doc})
install(DIRECTORY scenarios/litmus examples/ DESTINATION ${tidemark_doc}/examples)
