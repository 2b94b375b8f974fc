/**
 * Passes in Redis: their texts by id, with an index by end and one by whose they are, all in one slot.
 * Who changes one names the text that it has read; where that is no longer there, it reads again.
 */
import {
  SIGN_IN_TOKENS_PER_ACCOUNT,
  surplusTokens,
  type SignInToken,
  type SignInTokens,
  type SignInTokenKind,
} from '../../sign-in-tokens.js'
import { readSignInToken, writeSignInToken } from '../../records/account-records.js'
import type { RedisEngine } from '../connection/engine.js'
import { loadScript } from '../connection/script.js'
import { intact, listOf } from './read-records.js'

/** Removed in one step; others come in between. */
const BATCH = 256

const TEXTS = 'sluice:{passes}:texts'
/** Ids by the time of their end. */
const ENDS = 'sluice:{passes}:ends'
/** Account, kind and id. */
const OWNERS = 'sluice:{passes}:owners'
const KEYS = [TEXTS, ENDS, OWNERS]

const ADD = loadScript('records/add-session')

const MOVE = loadScript('records/move-session')

const DROP = loadScript('records/drop-sessions')

interface Found {
  readonly pass: SignInToken
  readonly text: string
}

/** Passes of a store. */
export class RedisPasses implements SignInTokens {
  private readonly engine: RedisEngine

  constructor(engine: RedisEngine) {
    this.engine = engine
  }

  async add(pass: SignInToken): Promise<boolean> {
    const what = 'adding a pass'
    const args = [pass.id, writeSignInToken(pass), pass.expiresAtMs, ownerOf(pass)]
    if ((await this.engine.changes.runDurably(what, ADD, KEYS, args)) !== 1) return false
    if (pass.accountId === '') return true
    const ids = await this.idsOf(what, pass.kind, pass.accountId)
    if (ids.length <= SIGN_IN_TOKENS_PER_ACCOUNT) return true
    const all = await this.read(what, ids)
    const surplus = new Set(surplusTokens(all.map((found) => found.pass)).map(({ id }) => id))
    const gone = all.filter((found) => surplus.has(found.pass.id) && found.pass.id !== pass.id)
    await this.drop(what, gone.slice(0, BATCH))
    return true
  }

  async find(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    return (await this.good('looking a pass up', kind, id, nowMs))?.pass ?? null
  }

  async prolong(
    kind: SignInTokenKind,
    id: string,
    expiresAtMs: number,
    nowMs: number,
  ): Promise<boolean> {
    const what = 'prolonging a pass'
    for (;;) {
      const found = await this.good(what, kind, id, nowMs)
      if (found === null) return false
      const text = writeSignInToken({ ...found.pass, expiresAtMs })
      const args = [id, found.text, text, expiresAtMs]
      if ((await this.engine.changes.runDurably(what, MOVE, KEYS, args)) === 1) return true
    }
  }

  async take(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    const what = 'taking a pass'
    for (;;) {
      const found = await this.good(what, kind, id, nowMs)
      if (found === null) return null
      if ((await this.drop(what, [found])) === 1) return found.pass
    }
  }

  async end(kind: SignInTokenKind, accountId: string, except: string | null): Promise<number> {
    const what = 'ending passes'
    const ids = (await this.idsOf(what, kind, accountId)).filter((id) => id !== except)
    let count = 0
    for (let from = 0; from < ids.length; from += BATCH) {
      count += await this.drop(what, await this.read(what, ids.slice(from, from + BATCH)))
    }
    return count
  }

  async sweep(nowMs: number): Promise<number> {
    const what = 'sweeping passes'
    for (let count = 0; ;) {
      const range = [ENDS, '-inf', nowMs, 'LIMIT', 0, BATCH]
      const ids = listOf(await this.engine.admin.send(what, 'zrangebyscore', range)).map(String)
      const found = await this.read(what, ids)
      count += await this.drop(
        what,
        found.filter(({ pass }) => pass.expiresAtMs <= nowMs),
      )
      if (ids.length < BATCH) return count
    }
  }

  private async idsOf(what: string, kind: SignInTokenKind, accountId: string): Promise<string[]> {
    const start = `${accountId}\0${kind}\0`
    const range = [OWNERS, `[${start}`, `[${start}\uffff`]
    const owners = listOf(await this.engine.admin.send(what, 'zrangebylex', range)).map(String)
    return owners.map((owner) => owner.slice(start.length))
  }

  private async good(
    what: string,
    kind: SignInTokenKind,
    id: string,
    nowMs: number,
  ): Promise<Found | null> {
    const [found] = await this.read(what, [id])
    if (found === undefined) {
      // A store that has lost its data knows nobody, and must not sign everybody out.
      await this.engine.assertSame(what)
      return null
    }
    return found.pass.kind === kind && found.pass.expiresAtMs > nowMs ? found : null
  }

  private async read(what: string, ids: readonly string[]): Promise<Found[]> {
    if (ids.length === 0) return []
    const texts = listOf(await this.engine.admin.send(what, 'hmget', [TEXTS, ...ids]))
    const found: Found[] = []
    for (const text of texts) {
      if (typeof text !== 'string') continue
      found.push({ text, pass: intact(what, 'a pass', () => readSignInToken(text)) })
    }
    return found
  }

  private async drop(what: string, found: readonly Found[]): Promise<number> {
    if (found.length === 0) return 0
    const args = found.flatMap(({ pass, text }) => [pass.id, text, ownerOf(pass)])
    return Number(await this.engine.changes.runDurably(what, DROP, KEYS, args))
  }
}

function ownerOf({ accountId, kind, id }: SignInToken): string {
  return `${accountId}\0${kind}\0${id}`
}
