/** V8 options of the processes that serve requests. */

/**
 * V8 options that can be set while a process runs. A worker has one core, so parallel garbage collection
 * threads only compete with each other. Pretenuring retains objects that short-lived objects reference.
 * Requests run through many small functions: a three times higher inlining limit saves 4 % of our own code's
 * time (docs/explanation/performance.md).
 */
export const V8_FLAGS = [
  '--no-parallel-scavenge',
  // With bodies of 1 MB and a small heap, V8 otherwise marks the whole heap for every 30 MB of them (bench --
  // splice).
  '--initial-old-space-size=128',
  '--no-allocation-site-pretenuring',
  '--max-inlined-bytecode-size=1000',
  '--max-inlined-bytecode-size-cumulative=3000',
]

/**
 * The options of a worker process. The size of the nursery can only be set at the start of a process; a
 * larger one is collected less often. Large pages for Node's own code save 9 % under virtualisation.
 */
export const WORKER_FLAGS = [
  '--max-semi-space-size=32',
  '--min-semi-space-size=32',
  '--use-largepages=silent',
  ...V8_FLAGS,
]
