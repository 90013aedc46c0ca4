import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.core.common.transport.TransportAddress;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/**
 * One OpenSearch node: {@code NodeLauncher HOME PARENT name=value...}.
 *
 * <p>A Node of its own rather than the server's main class: that one wants an unpacked
 * distribution, a security manager and the limits of a production machine. What it stores,
 * indexes and answers is the same. Once it serves, HOME/address holds host:port of its HTTP
 * endpoint, so the port can be 0 and is never fought over. It ends on SIGTERM, and with the
 * process PARENT unless that is 0.
 */
public final class NodeLauncher extends Node {
    private NodeLauncher(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), true);
    }

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]).toAbsolutePath();
        endWith(Long.parseLong(arguments[1]));
        Settings.Builder settings = Settings.builder().put("path.home", home.toString());
        for (String setting : List.of(arguments).subList(2, arguments.length)) {
            String[] nameAndValue = setting.split("=", 2);
            settings.put(nameAndValue[0], nameAndValue[1]);
        }
        Path config = Files.createDirectories(home.resolve("config"));
        NodeLauncher node = new NodeLauncher(InternalSettingsPreparer.prepareEnvironment(
            settings.build(), Map.of(), config, () -> "fairlane"));
        Runtime.getRuntime().addShutdownHook(new Thread(node::closeQuietly));
        node.start();
        TransportAddress http = node.injector().getInstance(HttpServerTransport.class)
            .boundAddress().publishAddress();
        tell(home.resolve("address"), http.getAddress() + ":" + http.getPort());
        // All of the node's threads are daemons: without this one, the process would end here.
        Thread.currentThread().join();
    }

    private static void endWith(long parent) {
        if (parent != 0) {
            ProcessHandle.of(parent).ifPresentOrElse(
                process -> process.onExit().thenRun(() -> System.exit(0)), () -> System.exit(0));
        }
    }

    /** The file appears with its content: who waits for it never reads half of it. */
    private static void tell(Path file, String address) throws IOException {
        Path fresh = Files.writeString(file.resolveSibling("address.new"), address);
        Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE);
    }

    private void closeQuietly() {
        try {
            close();
        } catch (IOException error) {
            error.printStackTrace();
        }
    }
}
