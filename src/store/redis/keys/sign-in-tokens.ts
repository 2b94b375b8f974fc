/**
 * Sign-in tokens in Redis: records by id, with an index by expiry time and one by account, all in one slot. A
 * change names the record that was read, and is repeated if another change came in between.
 */
import { accessDigest } from '../../../accounts/account.js'
import {
  SIGN_IN_TOKENS_PER_ACCOUNT,
  surplusTokens,
  type AddedToken,
  type AddedSignIn,
  type ChangedSignIns,
  type EndedTokens,
  type SignInTokenEdit,
  type SignInToken,
  type SignInTokens,
  type SignInTokenKind,
} from '../../sign-in-tokens.js'
import type { AuditEntry } from '../../audit-trail.js'
import { readSignInToken, writeSignInToken } from '../../records/account-and-key-records.js'
import { SLOTS, type RedisAuditTrail } from './audit-trail.js'
import type { RedisEngine } from '../connection/redis-engine.js'
import { COMPARE_AND_SET, guarded, type GuardedChange, type ScriptParameters } from '../connection/script.js'
import { parseRecord, listOf, stringsOf } from '../connection/parse-replies.js'

/** Tokens that one script deletes. */
const BATCH = 256

const TEXTS = 'sluice:{passes}:texts'
/** Ids by the time of their end. */
const ENDS = 'sluice:{passes}:ends'
/** Account, kind and id. */
const OWNERS = 'sluice:{passes}:owners'

/** What a change in another slot ends. */
interface LeftEnds {
  readonly ends: readonly EndedTokens[]
  /** Links that a new one replaces. */
  readonly replaced: readonly SignInToken[]
}

/** The text for `RedisSignInTokens.finishEnds`; null if nothing ends. */
export function leftEnds({ ends = [], link = null }: ChangedSignIns): string | null {
  const replaced = link?.replaces ?? []
  if (ends.length + replaced.length === 0) return null
  // The new one is written before the change.
  const own = link === null ? [] : [link.token.id]
  const others = ends.map((each) => ({ ...each, except: [...(each.except ?? []), ...own] }))
  return JSON.stringify({ ends: others, replaced } satisfies LeftEnds)
}

/** Selects a token of this kind that has not expired. */
interface TokenQuery {
  readonly kind: SignInTokenKind
  readonly id: string
  readonly nowMs: number
}

interface Found {
  readonly token: SignInToken
  readonly text: string
}

/** The sign-in tokens of a store. */
export class RedisSignInTokens implements SignInTokens {
  private readonly engine: RedisEngine
  private readonly auditTrail: RedisAuditTrail

  constructor(engine: RedisEngine, auditTrail: RedisAuditTrail) {
    this.engine = engine
    this.auditTrail = auditTrail
  }

  async add(token: SignInToken, change: AddedToken = {}): Promise<boolean> {
    const what = 'adding a sign-in token'
    if (!(await this.put(what, '', token, change))) return false
    if (token.accountId === '') return true
    const ids = await this.idsOf(what, token.kind, token.accountId)
    if (ids.length <= SIGN_IN_TOKENS_PER_ACCOUNT) return true
    const all = await this.read(what, ids)
    const surplus = new Set(surplusTokens(all.map((found) => found.token)).map(({ id }) => id))
    const gone = all.filter((found) => surplus.has(found.token.id) && found.token.id !== token.id)
    await this.drop(what, gone.slice(0, BATCH))
    return true
  }

  async find(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    return (await this.findValid('looking a token up', { kind, id, nowMs }))?.token ?? null
  }

  async change(
    kind: SignInTokenKind,
    id: string,
    edit: (token: SignInToken) => SignInTokenEdit | null,
    nowMs: number,
  ): Promise<SignInToken | null> {
    const what = 'changing a token'
    for (;;) {
      const found = await this.findValid(what, { kind, id, nowMs })
      const edited = found === null ? null : edit(found.token)
      if (found === null || edited === null) return null
      if (await this.put(what, found.text, { ...found.token, ...edited })) return found.token
    }
  }

  async take(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    const what = 'taking a token'
    for (;;) {
      const found = await this.findValid(what, { kind, id, nowMs })
      if (found === null) return null
      if ((await this.drop(what, [found])) === 1) return found.token
    }
  }

  async tokensOf(kind: SignInTokenKind, accountId: string, nowMs: number): Promise<SignInToken[]> {
    const what = 'listing tokens'
    const ids = await this.idsOf(what, kind, accountId)
    if (ids.length === 0) await this.engine.assertSameStore(what)
    const found = await this.read(what, ids)
    return found.map(({ token }) => token).filter(({ expiresAtMs }) => expiresAtMs > nowMs)
  }

  async end(
    kinds: SignInTokenKind | readonly SignInTokenKind[],
    accountId: string,
    except: string | null,
    entriesOf: (ended: readonly SignInTokenKind[]) => readonly AuditEntry[] = () => [],
  ): Promise<number> {
    return this.endTokens(
      { kinds: [kinds].flat(), accountId, except: except === null ? [] : [except] },
      entriesOf,
    )
  }

  /**
   * Makes a change in another slot with a new token, whose secret is unknown until then: it is written
   * first, and removed if the change is refused or fails.
   */
  async withLink<T>(
    link: AddedSignIn | null,
    isDone: (result: T) => boolean,
    change: () => Promise<T>,
  ): Promise<T> {
    if (link === null) return change()
    const { token } = link
    const remove = () => this.take(token.kind, token.id, 0).catch(() => undefined)
    await this.add(token)
    try {
      const result = await change()
      if (!isDone(result)) await remove()
      return result
    } catch (error) {
      await remove()
      throw error
    }
  }

  /**
   * Ends what a change has left to end in the field `ends` of a hash in another slot (`leftEnds`), and clears
   * the field. If the process of the change is killed, the next reader of the hash does it.
   */
  async finishEnds(key: string, text: string): Promise<void> {
    const { ends, replaced } = JSON.parse(text) as LeftEnds
    for (const each of ends) await this.endTokens(each, () => [])
    const what = 'removing tokens'
    await this.drop(
      what,
      await this.read(
        what,
        replaced.map(({ id }) => id),
      ),
    )
    const clear = guarded({ if: [[key, 'ends', text]], run: [['HDEL', key, 'ends']] })
    await this.engine.changes.run(what, COMPARE_AND_SET, clear)
  }

  private async endTokens(
    { kinds, accountId, except = [] }: EndedTokens,
    entriesOf: (ended: readonly SignInTokenKind[]) => readonly AuditEntry[],
  ): Promise<number> {
    const what = 'removing tokens'
    const ids: string[] = []
    for (const kind of kinds) ids.push(...(await this.idsOf(what, kind, accountId)))
    const ending = ids.filter((id) => !except.includes(id))
    const ended: SignInTokenKind[] = []
    let isNoted = false
    for (let from = 0; from < ending.length; from += BATCH) {
      const isLast = from + BATCH >= ending.length
      let left = ending.slice(from, from + BATCH)
      while (left.length > 0) {
        const found = await this.read(what, left)
        const foundKinds = found.map(({ token }) => token.kind)
        const entries = isLast && !isNoted ? entriesOf([...ended, ...foundKinds]) : []
        const dropped = await this.drop(what, found, entries)
        isNoted ||= isLast && dropped > 0
        ended.push(...foundKinds.slice(0, dropped))
        // A token that was prolonged since it was read must end, too: it would survive a password reset.
        left = dropped < found.length ? found.map(({ token }) => token.id) : []
      }
    }
    if (!isNoted) for (const entry of entriesOf(ended)) await this.auditTrail.add(entry)
    return ended.length
  }

  async sweep(nowMs: number): Promise<number> {
    const what = 'removing expired tokens'
    for (let count = 0; ;) {
      const range = [ENDS, '-inf', nowMs, 'LIMIT', 0, BATCH]
      const ids = stringsOf(await this.engine.admin.send(what, 'zrangebyscore', range))
      const found = await this.read(what, ids)
      count += await this.drop(
        what,
        found.filter(({ token }) => token.expiresAtMs <= nowMs),
      )
      if (ids.length < BATCH) return count
    }
  }

  private async idsOf(what: string, kind: SignInTokenKind, accountId: string): Promise<string[]> {
    const start = `${accountId}\0${kind}\0`
    const range = [OWNERS, `[${start}`, `[${start}\uffff`]
    const owners = stringsOf(await this.engine.admin.send(what, 'zrangebylex', range))
    return owners.map((owner) => owner.slice(start.length))
  }

  private async findValid(what: string, { kind, id, nowMs }: TokenQuery): Promise<Found | null> {
    const [found] = await this.read(what, [id])
    if (found === undefined) {
      // A store that lost its data must not sign out every user.
      await this.engine.assertSameStore(what)
      return null
    }
    return found.token.kind === kind && found.token.expiresAtMs > nowMs ? found : null
  }

  private async read(what: string, ids: readonly string[]): Promise<Found[]> {
    if (ids.length === 0) return []
    const texts = listOf(await this.engine.admin.send(what, 'hmget', [TEXTS, ...ids]))
    const found: Found[] = []
    for (const text of texts) {
      if (typeof text !== 'string') continue
      found.push({ text, token: parseRecord(what, 'a token', () => readSignInToken(text)) })
    }
    return found
  }

  /** Adds a token, or replaces the record that was read; false if it has changed since. */
  private async put(
    what: string,
    before: string,
    token: SignInToken,
    { auditEntries = [], replaces = [] }: AddedToken = {},
  ): Promise<boolean> {
    const { id } = token
    const change = guarded({
      if: [[TEXTS, id, before]],
      run: [
        ['HSET', TEXTS, id, writeSignInToken(token)],
        ['ZADD', ENDS, String(token.expiresAtMs), id],
        ['ZADD', OWNERS, '0', ownerOf(token)],
        ...replaces.flatMap(removalOf),
      ],
    })
    return (await this.run(what, change, auditEntries)) === 1
  }

  /** Deletes tokens unless they have changed, with audit entries if any is; resolves with their number. */
  private async drop(
    what: string,
    found: readonly Found[],
    auditEntries: readonly AuditEntry[] = [],
  ): Promise<number> {
    if (found.length === 0) return 0
    const changes = found.map(({ token, text }): GuardedChange => {
      return {
        if: [[TEXTS, token.id, text]],
        run: [
          ...removalOf(token),
          ...(token.kind === 'access'
            ? [['PUBLISH', this.engine.channel, accessDigest(token.id)] as const]
            : []),
        ],
      }
    })
    return Number(await this.run(what, guarded(...changes), auditEntries))
  }

  private run(what: string, change: ScriptParameters, auditEntries: readonly AuditEntry[]): Promise<unknown> {
    if (auditEntries.length === 0) return this.engine.changes.runDurably(what, COMPARE_AND_SET, change)
    const audited = { keys: change.keys, args: change.args, accountId: SLOTS.signInTokens, auditEntries }
    return this.auditTrail.runDurably(what, COMPARE_AND_SET, audited)
  }
}

function ownerOf({ accountId, kind, id }: SignInToken): string {
  return `${accountId}\0${kind}\0${id}`
}

function removalOf(token: SignInToken): GuardedChange['run'] {
  return [
    ['HDEL', TEXTS, token.id],
    ['ZREM', ENDS, token.id],
    ['ZREM', OWNERS, ownerOf(token)],
  ]
}
