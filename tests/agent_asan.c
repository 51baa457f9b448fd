/* Linked into the sanitized agent, whose environment is built from nothing: what its sanitizers are to do. A finding ends the process:
 * as PID 1 that is the end of the sandbox, in a worker that of the operation; either way a test fails, and the report is on stderr.
 * Leaks are not looked for: the search traces the process, which a filter and a pid namespace do not allow. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
    return "detect_leaks=0:abort_on_error=1:quarantine_size_mb=16:malloc_context_size=12:handle_"
           "abort=0";
}

const char *__ubsan_default_options(void)
{
    return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}
