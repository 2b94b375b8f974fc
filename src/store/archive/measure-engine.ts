/** Measures the requests to the database of an archive, for `sluice_archive_request_seconds`. */
import type { ArchiveEngine } from './archive-engine.js'

/** `insert`: rows; `read`: for a person; `check`: of what was written. */
export type ArchiveOperation = 'insert' | 'read' | 'check'

export type ObserveRequest = (operation: ArchiveOperation, seconds: number) => void

/** The engine, whose queries are of this operation. Failed requests are measured, too. */
export function measured(
  engine: ArchiveEngine,
  queries: 'read' | 'check',
  observe: ObserveRequest,
): ArchiveEngine {
  const timed = async <T>(operation: ArchiveOperation, request: Promise<T>): Promise<T> => {
    const startMs = performance.now()
    try {
      return await request
    } finally {
      observe(operation, (performance.now() - startMs) / 1_000)
    }
  }
  return {
    kind: engine.kind,
    is: engine.is,
    query: (...args) => timed(queries, engine.query(...args)),
    run: (sql) => timed(queries, engine.run(sql)),
    insert: (...args) => timed('insert', engine.insert(...args)),
    put: (...args) => timed('insert', engine.put(...args)),
    countBatch: (...args) => timed('check', engine.countBatch(...args)),
    prepare: (timesMs) => timed('check', engine.prepare(timesMs)),
    size: () => timed(queries, engine.size()),
    close: () => engine.close(),
  }
}
