# The R kernel's other half (r.py): one R that lives as long as the context.
#
# Cells come in on descriptor 9, one line each: the code, then NAME:value for its environment; all of it in hex digits, so that
# nothing needs quoting and base R can read it. What happened goes out on descriptor 8, one line each:
#
#   V text            a value that a person would see            M text   the same, of the last expression
#   P path            a plot                                     E name text trace
#   I                 interrupted                                D        the cell has ended
#
# What the code prints goes to the ordinary stdout.
local({
    hex <- function(text) {
        text <- enc2utf8(paste(text, collapse = "\n"))
        if (nzchar(text)) paste(as.character(charToRaw(text)), collapse = "") else "-"
    }
    plain <- function(digits) {
        if (digits == "-") return("")
        at <- seq(1L, nchar(digits), 2L)
        text <- rawToChar(as.raw(strtoi(substring(digits, at, at + 1L), 16L)))
        Encoding(text) <- "UTF-8"
        text
    }

    take <- file("/proc/self/fd/9", "r", raw = TRUE)
    tell <- file("/proc/self/fd/8", "w", raw = TRUE)
    say <- function(...) {
        flush(stdout())
        writeLines(paste(...), tell)
        flush(tell)
    }

    # ---- plots: a device that is opened by the first of a cell, and files that are told at its end ----
    plots <- tempfile("plots")
    dir.create(plots)
    options(device = function(...) grDevices::png(file.path(plots, "%03d.png"), width = 800, height = 600))
    tell_plots <- function() {
        grDevices::graphics.off()
        for (path in sort(list.files(plots, full.names = TRUE))) say("P", hex(path))
    }

    # ---- cells ----
    run <- function(code) {
        parts <- parse(text = code, keep.source = FALSE)
        for (i in seq_along(parts)) {
            got <- withVisible(eval(parts[[i]], globalenv()))
            if (!got$visible) next
            text <- utils::capture.output(print(got$value))
            if (length(text)) say(if (i == length(parts)) "M" else "V", hex(text))
        }
    }
    failed <- function(e, calls) {
        from <- vapply(calls, function(call) deparse(call, nlines = 1L)[1L], "")
        mine <- which(startsWith(from, "eval(parts[[i]]"))
        from <- if (length(mine)) from[-seq_len(max(mine))] else character() # ours are nobody's concern
        from <- from[!startsWith(from, ".handleSimpleError") & !startsWith(from, "h(simpleError")]
        message <- conditionMessage(e)
        name <- if (inherits(e, "simpleError")) "Error" else class(e)[1L]
        say("E", hex(name), hex(message), hex(c(paste0("Error: ", message), rev(from))))
    }
    cell <- function(code) {
        calls <- list()
        tryCatch(withCallingHandlers(run(code), error = function(e) calls <<- sys.calls()),
                 error = function(e) failed(e, calls), interrupt = function(e) say("I"))
        tryCatch(tell_plots(), error = function(e) NULL, interrupt = function(e) NULL)
    }
    with_env <- function(pairs, code) {
        names <- sub(":.*", "", pairs)
        was <- Sys.getenv(names, unset = NA, names = TRUE)
        for (i in seq_along(pairs)) do.call(Sys.setenv, stats::setNames(list(plain(sub("[^:]*:", "", pairs[i]))), names[i]))
        cell(code)
        for (name in names)
            if (is.na(was[[name]])) Sys.unsetenv(name) else do.call(Sys.setenv, stats::setNames(list(was[[name]]), name))
    }
    repeat {
        line <- tryCatch(readLines(take, n = 1L), interrupt = function(e) NULL)
        if (is.null(line)) next
        if (length(line) == 0L) break
        words <- strsplit(line, " ", fixed = TRUE)[[1L]]
        with_env(words[-1L], plain(words[1L]))
        say("D")
    }
})
