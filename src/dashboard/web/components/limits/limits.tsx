/** Limits and budgets of an account: used and left, as a bar and as amounts, and when each resets. */
import type { LimitStanding } from '../../../server/schema/schema.js'
import { useResource } from '../../api/resource.js'
import { LIMIT_NAMES } from '../../format/limits.js'
import { count, dollars, exactCount, exactDollars, percent } from '../../format/number.js'
import { fullTime, until } from '../../format/time.js'
import { useNow } from '../../shell/clock.js'
import { Block } from '../../shell/page.js'

const EVERY_MS = 15_000
/** From this share on, a limit is shown as nearly used up. */
const WARN_SHARE = 0.8
/** Limits of keys that are shown beside those of the account. */
const MOST_KEY_LIMITS = 6

/** The share of a limit that is used, 0 to 1. */
export function shareOf({ used, limit }: Pick<LimitStanding, 'used' | 'limit'>): number {
  return limit === 0 ? 1 : used / limit
}

/** An amount of a limit, with its unit. */
export function amountText(kind: LimitStanding['kind'], amount: number): string {
  return kind.startsWith('usd') ? dollars(amount) : count(amount)
}

function exactText(kind: LimitStanding['kind'], amount: number): string {
  return kind.startsWith('usd') ? exactDollars(amount) : exactCount(amount)
}

/** The limits of an account and of its keys, updated every few seconds; undefined: not known yet. */
export function useLimits(account: string | null): readonly LimitStanding[] | undefined {
  const options = { everyMs: EVERY_MS, enabled: account !== 'all' }
  return useResource('/limits', { account }, options).data?.limits
}

interface LimitsProps {
  /** Undefined: not known yet. */
  readonly limits: readonly LimitStanding[] | undefined
  /** Shows limits of keys, too. */
  readonly withKeys?: boolean
}

/** The limits of the account, and those of its keys that are used most. Nothing if there are none. */
export function Limits({ limits, withKeys = true }: LimitsProps) {
  if (limits === undefined || limits.length === 0) return null
  const own = limits.filter(({ scope }) => scope !== 'key')
  const ofKeys = limits
    .filter(({ scope, used }) => withKeys && scope === 'key' && used > 0)
    .sort((a, b) => shareOf(b) - shareOf(a))
    .slice(0, MOST_KEY_LIMITS)
  const shown = [...own, ...ofKeys]
  if (shown.length === 0) return null
  return (
    <Block title="Limits and budgets" note="used now">
      <ul className="limits">
        {shown.map((limit) => (
          <li key={`${limit.scope} ${limit.keyId ?? ''} ${limit.kind}`}>
            <LimitBar limit={limit} />
          </li>
        ))}
      </ul>
    </Block>
  )
}

const OWNERS = { plan: 'plan', account: 'account', key: 'key' } as const

interface BarProps {
  readonly limit: LimitStanding
  /** Its owner is named beside it already. */
  readonly isCompact?: boolean
}

/** One limit: its name, a bar, what is used and left, and when it resets. */
export function LimitBar({ limit: standing, isCompact = false }: BarProps) {
  const { scope, keyName, kind, limit, used, left, resetsAtMs } = standing
  const now = useNow()
  const share = shareOf(standing)
  const owner = keyName ?? OWNERS[scope]
  const name = `${LIMIT_NAMES[kind] ?? kind}, ${owner}`
  const tone = share >= 1 ? 'bad' : share >= WARN_SHARE ? 'warn' : ''
  return (
    <div className={`limit ${tone}`.trimEnd()}>
      <p className="limit-name">
        {LIMIT_NAMES[kind]} {isCompact ? null : <span className="soft">· {owner}</span>}
      </p>
      <meter
        className="limit-bar"
        min={0}
        max={Math.max(limit, 1)}
        value={used}
        aria-label={`${name}: ${percent(share)} used`}
      />
      <p className="limit-amount" title={`${exactText(kind, used)} of ${exactText(kind, limit)}`}>
        {amountText(kind, used)} of {amountText(kind, limit)} used
        {isCompact ? null : ` · ${amountText(kind, left)} left`}
        {resetsAtMs === null ? null : (
          <span className="soft" title={fullTime(resetsAtMs)}>
            {' '}
            · resets {resetsAtMs - now < 60_000 ? 'within a minute' : until(resetsAtMs, now)}
          </span>
        )}
      </p>
    </div>
  )
}
