package dev.trommel;

import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;

/** Frees what native handles stand for, when the objects that have them cannot be reached. */
final class Handles {
    static final Cleaner CLEANER = Cleaner.create(Handles::thread);

    private Handles() {}

    private static Thread thread(Runnable work) {
        Thread thread = new Thread(null, work, "trommel-cleaner", 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(null);
        return thread;
    }

    /** The action must not know the owner: that would keep it reachable. */
    static void free(Object owner, long handle, LongConsumer action) {
        CLEANER.register(owner, () -> action.accept(handle));
    }
}
