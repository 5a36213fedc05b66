package dev.trommel;

/**
 * What the native library has: {@code crates/jni}.
 *
 * <p>What each caller keeps, since nothing checks it there: a handle is of the kind that the call
 * takes, and is not freed. It is freed when its object cannot be reached any more; a call keeps
 * that object reachable until it has returned. Lengths are those of the arrays.
 */
final class Native {
    static {
        NativeLibrary.load();
        NativeLibrary.checkVersion(Packed.text(version()));
    }

    private Native() {}

    // The library.

    static native byte[] version();

    /** For tests: the library panics. */
    static native void panic();

    // Options.

    static native void checkOptions(byte[] options, int length);

    static native byte[] optionText(byte[] options, int length, byte[] name, int nameLength);

    static native byte[] listOptions();

    // A store, by the handle of any of its key spaces.

    static native long open(byte[] path, int pathLength, byte[] options, int optionsLength);

    static native void close(long keyspace);

    static native long keyspace(
            long of, byte[] name, int nameLength, byte[] options, int optionsLength);

    static native long openKeyspace(long of, byte[] name, int nameLength);

    static native byte[] keyspaceName(long keyspace);

    static native byte[] keyspaces(long keyspace);

    static native void dropKeyspace(long of, byte[] name, int nameLength);

    static native void renameKeyspace(
            long of, byte[] from, int fromLength, byte[] to, int toLength);

    static native void sync(long keyspace);

    static native void flush(long keyspace, boolean isWholeStore);

    static native void compact(long keyspace, boolean isWholeStore);

    static native void settle(long keyspace);

    static native void checkpoint(long keyspace, byte[] path, int pathLength);

    static native byte[] verify(long keyspace);

    static native byte[] stats(long keyspace);

    // What is read: a key space, a snapshot, a transaction.

    static native byte[] get(long from, byte[] key, int keyLength);

    static native boolean contains(long in, byte[] key, int keyLength);

    static native int getDirect(
            long from,
            Object key,
            int keyAt,
            int keyLength,
            Object value,
            int valueAt,
            int valueRoom);

    static native int getInto(
            long from, byte[] key, int keyLength, Object value, int valueAt, int valueRoom);

    static native byte[] getMany(long from, byte[] keys, int length);

    static native byte[] rows(
            long of,
            byte[] from,
            int fromLength,
            byte[] to,
            int toLength,
            boolean isReverse,
            int rows,
            int bytes);

    static native boolean mayContainRange(
            long in, byte[] from, int fromLength, byte[] to, int toLength);

    static native byte[] approximateCount(
            long in, byte[] from, int fromLength, byte[] to, int toLength);

    static native long sequence(long of);

    static native void freeReader(long handle);

    static native byte[] nextRows(long rows, int count, int bytes);

    static native void freeRows(long handle);

    // Writes, into a key space or a transaction.

    static native void put(long into, byte[] key, int keyLength, byte[] value, int valueLength);

    static native void putDirect(
            long into,
            Object key,
            int keyAt,
            int keyLength,
            Object value,
            int valueAt,
            int valueLength);

    static native void putFor(
            long into,
            byte[] key,
            int keyLength,
            byte[] value,
            int valueLength,
            long seconds,
            int nanoseconds);

    static native void delete(long from, byte[] key, int keyLength);

    static native void deleteRange(long in, byte[] from, int fromLength, byte[] to, int toLength);

    static native void merge(
            long into, byte[] key, int keyLength, byte[] operand, int operandLength);

    // Writes into a key space alone.

    static native byte[] putIfAbsent(
            long into, byte[] key, int keyLength, byte[] value, int valueLength);

    static native boolean compareAndSwap(
            long in,
            byte[] key,
            int keyLength,
            byte[] expected,
            int expectedLength,
            byte[] value,
            int valueLength);

    static native long fetchAdd(long in, byte[] key, int keyLength, long add);

    static native long ingest(long into, RowFeeder rows);

    static native long ingestBatch(long into, byte[] writes, int length);

    static native void write(
            long store, byte[] writes, int length, long[] keyspaces, boolean isSynced);

    // Snapshots and transactions.

    static native long snapshot(long keyspace);

    static native long snapshotOf(long snapshot, long keyspace);

    static native void closeSnapshot(long snapshot);

    static native long transaction(long keyspace, boolean isSerializable);

    static native long transactionOf(long transaction, long keyspace);

    static native byte[] getForUpdate(long transaction, byte[] key, int keyLength);

    static native long savepoint(long transaction);

    static native void rollBackTo(long transaction, long savepoint);

    static native long commit(long transaction, boolean isSynced);

    static native void rollBack(long transaction);

    static native void freeSavepoint(long handle);

    // Filters alone.

    static native byte[] filterKinds();

    static native long filterBuilder(byte[] kind, int kindLength, double bitsPerKey);

    static native void filterAdd(long builder, byte[] keys, int length);

    static native long filterBuild(long builder);

    static native void freeFilterBuilder(long handle);

    static native long filterOf(byte[] bytes, int length);

    static native byte[] filterBytes(long filter);

    static native byte[] filterKind(long filter);

    static native boolean filterKnowsRanges(long filter);

    static native long filterSize(long filter);

    static native boolean filterMayContain(long filter, byte[] key, int keyLength);

    static native boolean filterMayContainRange(
            long filter, byte[] from, int fromLength, byte[] to, int toLength);

    static native void freeFilter(long handle);
}
