/**
 * The embedded engine's passes: by id, by whose they are, and in the order in which they expire.
 */
import type { Database } from 'lmdb'
import { intact, isName, put, remove, type LmdbEngine } from './lmdb-engine.js'
import { damaged } from './lmdb-failure.js'
import { surplusOf, type Pass, type Passes, type PassKind } from './passes.js'
import { readPass, writePass } from './record.js'

/** Removed in one transaction; others may write in between. */
const BATCH = 256
/** Nobody's passes need a name in the index too. */
const NOBODY = '-'

/** Passes in an environment. */
export class LmdbPasses implements Passes {
  private readonly engine: LmdbEngine
  private readonly passes: Database<string>
  /** Account, kind and id. */
  private readonly owners: Database<string>
  /** Expiry and id. */
  private readonly ends: Database<string>

  constructor(engine: LmdbEngine) {
    this.engine = engine
    this.passes = engine.table('passes')
    this.owners = engine.table('pass-owners')
    this.ends = engine.table('pass-ends')
  }

  add(pass: Pass): Promise<boolean> {
    return this.engine.write('adding a pass', () => {
      if (this.pass(pass.id) !== null) return false
      const text = writePass(pass)
      const others = pass.accountId === '' ? [] : this.of(pass.kind, pass.accountId)
      for (const gone of surplusOf([...others, pass])) if (gone.id !== pass.id) this.drop(gone)
      put(this.passes, pass.id, text)
      put(this.owners, ownerPlace(pass), '')
      put(this.ends, [pass.expiresAtMs, pass.id], '')
      return true
    })
  }

  find(kind: PassKind, id: string, nowMs: number): Promise<Pass | null> {
    return this.engine.read('looking a pass up', () => this.good(kind, id, nowMs))
  }

  prolong(kind: PassKind, id: string, expiresAtMs: number, nowMs: number): Promise<boolean> {
    return this.engine.write('prolonging a pass', () => {
      const pass = this.good(kind, id, nowMs)
      if (pass === null) return false
      const text = writePass({ ...pass, expiresAtMs })
      remove(this.ends, [pass.expiresAtMs, id])
      put(this.passes, id, text)
      put(this.ends, [expiresAtMs, id], '')
      return true
    })
  }

  take(kind: PassKind, id: string, nowMs: number): Promise<Pass | null> {
    return this.engine.write('taking a pass', () => {
      const pass = this.good(kind, id, nowMs)
      if (pass !== null) this.drop(pass)
      return pass
    })
  }

  end(kind: PassKind, accountId: string, except: string | null): Promise<number> {
    return this.engine.write('ending passes', () => {
      if (accountId !== '' && !isName(accountId)) return 0
      const ending = this.of(kind, accountId).filter(({ id }) => id !== except)
      for (const pass of ending) this.drop(pass)
      return ending.length
    })
  }

  async sweep(nowMs: number): Promise<number> {
    for (let count = 0; ;) {
      const gone = await this.engine.write('sweeping passes', () => {
        const ids: string[] = []
        for (const { key } of this.ends.getRange({ end: [nowMs + 1], limit: BATCH })) {
          ids.push(idIn(key))
        }
        const ending = ids.map((id) => this.indexed(id))
        for (const pass of ending) this.drop(pass)
        return ending.length
      })
      count += gone
      if (gone < BATCH) return count
    }
  }

  private of(kind: PassKind, accountId: string): Pass[] {
    const owner = accountId === '' ? NOBODY : accountId
    const range = { start: [owner, kind, ''], end: [owner, kind, '\uffff'] }
    const ids = Array.from(this.owners.getRange(range), ({ key }) => idIn(key))
    return ids.map((id) => this.indexed(id))
  }

  private good(kind: PassKind, id: string, nowMs: number): Pass | null {
    const pass = this.pass(id)
    return pass !== null && pass.kind === kind && pass.expiresAtMs > nowMs ? pass : null
  }

  private pass(id: string): Pass | null {
    const text = isName(id) ? this.passes.get(id) : undefined
    if (text === undefined) return null
    const pass = intact('a pass', () => readPass(text))
    if (pass.id !== id) throw damaged('a pass', 'it is another one')
    return pass
  }

  private indexed(id: string): Pass {
    const pass = this.pass(id)
    if (pass === null) throw damaged('a pass', 'an index names it; it is gone')
    return pass
  }

  /** Only inside a transaction. */
  private drop(pass: Pass): void {
    remove(this.passes, pass.id)
    remove(this.owners, ownerPlace(pass))
    remove(this.ends, [pass.expiresAtMs, pass.id])
  }
}

function ownerPlace({ accountId, kind, id }: Pass): string[] {
  return [accountId === '' ? NOBODY : accountId, kind, id]
}

/** The last part of an index's place. */
function idIn(place: unknown): string {
  const id: unknown = Array.isArray(place) ? place.at(-1) : undefined
  if (typeof id !== 'string') throw damaged('a pass', 'an index has a place of another form')
  return id
}
