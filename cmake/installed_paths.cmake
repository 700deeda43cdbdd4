# Where the installed library finds what comes with it: paths relative to its own folder. A build tree has the same
# layout for programs.
file(RELATIVE_PATH HSTUJIT_RECORDS_FROM_LIBRARY ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_FULL_DATADIR}/hstujit/records)
file(RELATIVE_PATH HSTUJIT_WORKER_FOLDER_FROM_LIBRARY ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/hstujit)
