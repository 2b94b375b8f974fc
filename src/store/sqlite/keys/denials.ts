/** Denied workload identities in SQLite. */
import type { AuditEntry } from '../../audit-trail.js'
import { denialEndOf, subjectsOf, type Denial, type DenialSubject } from '../../denials.js'
import { readDenial, writeDenial } from '../../records/account-and-key-records.js'
import type { Denials, Page, PageQuery, StoreCapacity } from '../../store.js'
import { textIn, type Row } from '../driver.js'
import { BATCH, inBatches, type Engine } from '../engine.js'
import { intact, isName, numberOf, pageOf } from '../read-records.js'
import type { SqliteAuditTrail } from './audit-trail.js'
import type { SqliteNotifications } from './notifications.js'

const INSERT = 'INSERT INTO denials (id, subject, expires_at_ms, record) VALUES (?, ?, ?, ?)'
/** A token has at most two subjects; one that it does not have is repeated. */
const FIND = 'SELECT 1 FROM denials WHERE subject IN (?, ?) AND expires_at_ms > ? LIMIT 1'
const DELETE_EXPIRED = `DELETE FROM denials WHERE place IN
  (SELECT place FROM denials WHERE expires_at_ms <= ? LIMIT ${BATCH})`

/** The parts of the store that denials need. */
interface DenialsOptions {
  readonly engine: Engine
  readonly auditTrail: SqliteAuditTrail
  readonly notifications: SqliteNotifications
  readonly capacity: StoreCapacity
}

/** The denials of a store. */
export class SqliteDenials implements Denials {
  private readonly options: DenialsOptions

  constructor(options: DenialsOptions) {
    this.options = options
  }

  create(denial: Denial, auditEntries: readonly AuditEntry[] = []): Promise<'created' | 'full'> {
    const { engine, capacity } = this.options
    return this.write('denying an identity', auditEntries, () => {
      const count = numberOf(engine.prepare('SELECT count(*) AS n FROM denials').get())
      if (count >= capacity.denials) return null
      const [subject = ''] = subjectsOf(denial)
      engine.prepare(INSERT).run(denial.id, subject, denialEndOf(denial), writeDenial(denial))
      return 'created' as const
    }).then((outcome) => outcome ?? 'full')
  }

  byId(id: string): Promise<Denial | null> {
    return this.options.engine.read('reading a denial', () => this.read(id))
  }

  list(query: PageQuery): Promise<Page<Denial>> {
    const { engine } = this.options
    const rows = { engine, sql: 'SELECT place, record FROM denials WHERE true', values: [] }
    return engine.read('listing denials', () => pageOf(rows, query, denialIn))
  }

  remove(
    id: string,
    auditEntries: (removed: Denial) => readonly AuditEntry[] = () => [],
  ): Promise<Denial | null> {
    const { engine, auditTrail } = this.options
    return this.write('removing a denial', [], () => {
      const denial = this.read(id)
      if (denial === null) return null
      engine.prepare('DELETE FROM denials WHERE id = ?').run(id)
      auditTrail.addAll(auditEntries(denial))
      return denial
    })
  }

  isDenied(token: DenialSubject, nowMs: number): boolean {
    const [first, second = first] = subjectsOf(token)
    if (first === undefined || second === undefined) return false
    const { engine } = this.options
    return engine.readNow('reading denials', () => {
      return engine.prepare(FIND).get(first, second, nowMs) !== undefined
    })
  }

  sweep(nowMs: number): Promise<number> {
    const { engine } = this.options
    return inBatches(engine, 'removing expired denials', () =>
      Number(engine.prepare(DELETE_EXPIRED).run(nowMs).changes),
    )
  }

  /** Writes the audit entries and notifies with a change; null is none. */
  private write<T>(
    what: string,
    auditEntries: readonly AuditEntry[],
    job: () => T | null,
  ): Promise<T | null> {
    const { engine, auditTrail, notifications } = this.options
    return notifications.announced(
      engine.writeDurably(what, () => {
        const result = job()
        if (result === null) return null
        auditTrail.addAll(auditEntries)
        notifications.note(null)
        return result
      }),
    )
  }

  private read(id: string): Denial | null {
    if (!isName(id)) return null
    const { engine } = this.options
    const row = engine.prepare('SELECT record FROM denials WHERE id = ?').get(id)
    return row === undefined ? null : denialIn(row)
  }
}

function denialIn(row: Row): Denial {
  return intact('a denial', () => readDenial(textIn(row, 'record')))
}
