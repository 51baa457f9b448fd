// The java kernel: cells come in on stdin, one JSON line each, and go to JShell, snippet by snippet; events go out on a pipe of
// its own. Code runs in this process, so what it prints goes to the ordinary stdout. The last snippet's value, if it is an
// expression, is the main result. Variables of the environment cannot be changed in Java: those of a cell are system properties
// while it runs (System.getProperty).

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import jdk.jshell.*;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;
import jdk.jshell.execution.LocalExecutionControlProvider;

public class Java {
    static final List<String> IMPORTS = List.of("java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*",
            "java.util.concurrent.*", "java.util.function.*", "java.util.regex.*", "java.util.stream.*");

    static OutputStream events;
    static JShell shell;
    static volatile boolean running, interrupted;
    static int count;

    // ---- JSON: cells are written by the server, so what they can look like is known ----

    static int end; // behind the text that was read last

    /** The text whose first quote is at `i`. */
    static String textAt(String json, int i) {
        StringBuilder out = new StringBuilder();
        for (i++; json.charAt(i) != '"'; i++) {
            char c = json.charAt(i);
            if (c != '\\') {
                out.append(c);
                continue;
            }
            c = json.charAt(++i);
            if (c == 'u') {
                out.append((char) Integer.parseInt(json.substring(i + 1, i + 5), 16));
                i += 4;
            } else {
                int plain = "bfnrt".indexOf(c);
                out.append(plain < 0 ? c : "\b\f\n\r\t".charAt(plain));
            }
        }
        end = i + 1;
        return out.toString();
    }

    static String textOf(String json, String name) {
        int at = json.indexOf("\"" + name + "\":\"");
        return at < 0 ? null : textAt(json, at + name.length() + 3);
    }

    /** {"env":{"NAME":"value",…}}; a quote inside a text has a backslash, so that this is found nowhere else. */
    static Map<String, String> environmentOf(String json) {
        Map<String, String> env = new HashMap<>();
        int at = json.indexOf("\"env\":{\"");
        if (at < 0) return env;
        end = at + 6;
        do {
            String name = textAt(json, end + 1);
            env.put(name, textAt(json, end + 1));
        } while (json.charAt(end) == ',');
        return env;
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < 0x20 || c > 0x7e) out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        }
        return out.append('"').toString();
    }

    static void emit(String event) throws IOException {
        System.out.flush();
        System.err.flush();
        events.write((event + "\n").getBytes(StandardCharsets.US_ASCII));
        events.flush();
    }

    static void error(String name, String value, String traceback) throws IOException {
        emit("{\"type\":\"error\",\"name\":" + quoted(name) + ",\"value\":" + quoted(value) + ",\"traceback\":"
                + quoted(traceback) + "}");
    }

    // ---- cells ----

    static boolean failed(SnippetEvent event) throws IOException {
        if (event.exception() instanceof EvalException thrown) {
            StringBuilder trace = new StringBuilder(thrown.getExceptionClassName() + ": " + thrown.getMessage());
            for (StackTraceElement frame : thrown.getStackTrace()) trace.append("\n    at ").append(frame);
            String name = thrown.getExceptionClassName();
            error(name.substring(name.lastIndexOf('.') + 1), String.valueOf(thrown.getMessage()), trace.toString());
            return true;
        }
        if (event.exception() != null) {
            error("UnresolvedReference", String.valueOf(event.exception().getMessage()), "something that it needs is not defined");
            return true;
        }
        if (event.status() != Snippet.Status.REJECTED) return false;
        StringBuilder text = new StringBuilder();
        shell.diagnostics(event.snippet()).forEach(d -> text.append(d.getMessage(Locale.ENGLISH)).append("\n"));
        error("CompilationError", text.toString().strip(), event.snippet().source().strip() + "\n" + text);
        return true;
    }

    static boolean isValue(Snippet snippet) {
        return snippet.kind() == Snippet.Kind.EXPRESSION || snippet.kind() == Snippet.Kind.VAR
                && snippet.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
    }

    static void evaluate(String code) throws IOException {
        SnippetEvent last = null;
        while (!code.isBlank()) {
            CompletionInfo part = shell.sourceCodeAnalysis().analyzeCompletion(code);
            String source = part.completeness().isComplete() ? part.source() : code;
            for (SnippetEvent event : shell.eval(source == null ? code : source)) {
                if (interrupted) {
                    error("KeyboardInterrupt", "", "the cell was interrupted");
                    return;
                }
                if (event.causeSnippet() == null) {
                    if (failed(event)) return;
                    last = event;
                }
            }
            code = part.completeness().isComplete() ? part.remaining() : "";
        }
        if (last != null && isValue(last.snippet()) && last.value() != null && !last.value().isEmpty())
            emit("{\"type\":\"result\",\"is_main_result\":true,\"data\":{\"text/plain\":" + quoted(last.value()) + "}}");
    }

    static void run(String cell) throws IOException {
        String id = quoted(textOf(cell, "id"));
        emit("{\"type\":\"begin\",\"id\":" + id + ",\"execution_count\":" + ++count + "}");
        Map<String, String> env = environmentOf(cell), before = new HashMap<>();
        env.forEach((name, value) -> before.put(name, name.isEmpty() ? null : System.setProperty(name, value)));
        interrupted = false;
        running = true;
        evaluate(textOf(cell, "code"));
        running = false;
        before.forEach((name, value) -> {
            if (value != null) System.setProperty(name, value);
            else if (!name.isEmpty()) System.clearProperty(name);
        });
        emit("{\"type\":\"end\",\"id\":" + id + "}");
    }

    static void onInterrupt() {
        interrupted = true;
        if (running) shell.stop();
    }

    public static void main(String[] args) throws IOException {
        BufferedReader cells = new BufferedReader(
                new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.US_ASCII));
        events = new FileOutputStream("/proc/self/fd/" + args[0]);
        System.setIn(InputStream.nullInputStream()); // not for the code of cells
        shell = JShell.builder().executionEngine(new LocalExecutionControlProvider(), Map.of()).out(System.out).err(System.err).build();
        for (String name : IMPORTS) shell.eval("import " + name + ";");
        sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> onInterrupt());
        for (String line; (line = cells.readLine()) != null;) run(line);
        System.exit(0);
    }
}
