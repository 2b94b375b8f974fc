/** Limits and budgets of an account: used and remaining amounts, and the time of the next reset. */
import type { ReactNode } from 'react'
import type { LimitLevel, RequestRow } from '../../../control/dashboard/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import { count, dollars, exactCount, exactDollars, percent } from '../format/number.js'
import { fullTime, MINUTE_MS, until } from '../format/time.js'
import { useNow } from '../shell/clock.js'
import { Block } from '../shell/page.js'

const EVERY_MS = 15_000
/** The share from which a limit is shown as nearly used up. */
const WARN_SHARE = 0.8
/** Maximum number of key limits beside those of the account. */
const MAX_KEY_LIMITS = 6

/** The used share of a limit, 0 to 1. */
export function shareOf({ used, limit }: Pick<LimitLevel, 'used' | 'limit'>): number {
  return limit === 0 ? 1 : used / limit
}

interface MeterProps extends Pick<LimitLevel, 'used' | 'limit'> {
  /** What is limited, for screen readers. */
  readonly label: string
  readonly title?: string
  readonly above: ReactNode
  readonly children?: ReactNode
}

/** The used share of a limit as a bar between its texts, coloured when it is nearly or quite used up. */
export function Meter({ label, used, limit, title, above, children }: MeterProps) {
  const share = shareOf({ used, limit })
  const tone = share >= 1 ? 'bad' : share >= WARN_SHARE ? 'warn' : ''
  return (
    <div className={`limit ${tone}`.trimEnd()} title={title}>
      {above}
      <meter
        className="limit-bar"
        min={0}
        max={limit === 0 ? 1 : limit}
        value={used}
        aria-label={`${label}: ${percent(share)} used`}
      />
      {children}
    </div>
  )
}

/** An amount of a limit, with its unit. */
function amountText(kind: LimitLevel['kind'], amount: number): string {
  return kind.startsWith('usd') ? dollars(amount) : count(amount)
}

function exactText(kind: LimitLevel['kind'], amount: number): string {
  return kind.startsWith('usd') ? exactDollars(amount) : exactCount(amount)
}

/** The limits of an account and its keys, polled; undefined before the first reply. */
export function useLimits(account: string | null): readonly LimitLevel[] | undefined {
  const options = { everyMs: EVERY_MS, enabled: account !== 'all' }
  return useResource('/limits', { account }, options).data?.limits
}

interface LimitsProps {
  /** Undefined before the first reply. */
  readonly limits: readonly LimitLevel[] | undefined
  /** Also shows limits of keys. */
  readonly withKeys?: boolean
}

/** The limits of the account and the most used ones of its keys. Renders nothing without limits. */
export function Limits({ limits, withKeys = true }: LimitsProps) {
  if (limits === undefined || limits.length === 0) return null
  const own = limits.filter(({ scope }) => scope !== 'key')
  const ofKeys = limits
    .filter(({ scope, used }) => withKeys && scope === 'key' && used > 0)
    .sort((a, b) => shareOf(b) - shareOf(a))
    .slice(0, MAX_KEY_LIMITS)
  const shown = [...own, ...ofKeys]
  if (shown.length === 0) return null
  return (
    <Block title="Limits and budgets" note="used now">
      <ul className="limits panel">
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
  readonly limit: LimitLevel
  /** Omits the name of the owner. */
  readonly isCompact?: boolean
}

/** One limit: its name, a bar, used and remaining amounts, and the time of its reset. */
export function LimitBar({ limit: level, isCompact = false }: BarProps) {
  const { scope, keyName, kind, limit, used, left, resetsAtMs, sinceMs } = level
  const now = useNow()
  const owner = keyName ?? OWNERS[scope]
  return (
    <Meter
      label={`${LIMIT_NAMES[kind]}, ${owner}`}
      {...{ used, limit }}
      above={
        <p className="limit-name">
          {LIMIT_NAMES[kind]} {isCompact ? null : <span className="soft">· {owner}</span>}
        </p>
      }
    >
      <p className="limit-amount small" title={`${exactText(kind, used)} of ${exactText(kind, limit)}`}>
        {amountText(kind, used)} of {amountText(kind, limit)} used
        {isCompact ? null : ` · ${amountText(kind, left)} left`}
        {resetsAtMs === null ? null : (
          <span className="soft" title={fullTime(resetsAtMs)}>
            {' '}
            · resets {resetsAtMs - now < MINUTE_MS ? 'within a minute' : until(resetsAtMs, now)}
          </span>
        )}
        <Since ms={sinceMs} />
      </p>
    </Meter>
  )
}

/** Since when a budget counts that lacks earlier use of its period. */
function Since({ ms }: { readonly ms: number | null }) {
  if (ms === null) return null
  return (
    <span className="soft" title="Earlier use in the period is not in it">
      {' '}
      · counts since {fullTime(ms)}
    </span>
  )
}

/** What a limit counts, by its name in the configuration. */
const LIMIT_NAMES: Readonly<Record<LimitLevel['kind'], string>> = {
  requests_per_minute: 'Requests per minute',
  tokens_per_minute: 'Tokens per minute',
  concurrent: 'Concurrent requests',
  usd_per_day: 'Budget per day (UTC)',
  usd_per_week: 'Budget per week (UTC, from Monday)',
  usd_per_month: 'Budget per month (UTC)',
  usd_total: 'Budget in all',
  tokens_per_day: 'Tokens per day (UTC)',
  tokens_per_week: 'Tokens per week (UTC, from Monday)',
  tokens_per_month: 'Tokens per month (UTC)',
  tokens_total: 'Tokens in all',
  requests_total: 'Requests in all',
  'units_per_minute image': 'Pictures per minute',
  'units_per_minute audio_second': 'Seconds of sound per minute',
  'units_per_minute character': 'Characters per minute',
  'units_per_minute page': 'Pages per minute',
  'units_per_minute search': 'Searches per minute',
  'units_per_minute document': 'Documents per minute',
  'units_per_minute line': 'Lines of batches per minute',
}

/** What a limit counts, as a text, by its name in the configuration. */
function limitName(name: string): string {
  const names: Readonly<Record<string, string>> = LIMIT_NAMES
  return names[name] ?? name
}

/** The rule of a ledger entry as a text: `Requests per minute of this key`. */
export function limitText(limit: string): string {
  const [subject = '', ...name] = limit.split(' ')
  return `${limitName(name.join(' '))} of ${ownerText(subject)}`
}

function ownerText(subject: string): string {
  const [owner = ''] = subject.split(';')
  const at = owner.indexOf(':')
  const [scope, name] = [owner.slice(0, at), owner.slice(at + 1)]
  switch (scope) {
    case 'key':
      return name.startsWith('login/') ? name.slice('login/'.length) : 'this key'
    case 'user':
      return name
    case 'account':
      return subject.endsWith(';of-plan') ? 'the plan' : 'this account'
    case 'model':
    case 'upstream':
      return `the ${scope} "${name}"`
    case 'label':
      return `the label ${name}`
    default:
      return subject
  }
}

/** From 1 (on a Sunday) to 7 (on a Monday). */
function daysToMonday(at: Date): number {
  return 7 - ((at.getUTCDay() + 6) % 7)
}

/** When the limit that refused a request resets, ms since 1970; null if it depends on running requests. */
export function resetsAtMs({
  limit,
  atMs,
  retryAfterSeconds,
}: Pick<RequestRow, 'limit' | 'atMs' | 'retryAfterSeconds'>): number | null {
  const name = limit?.split(' ')[1]
  const at = new Date(atMs)
  switch (name) {
    case 'usd_per_day':
    case 'tokens_per_day':
      return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + 1)
    case 'usd_per_week':
    case 'tokens_per_week':
      return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + daysToMonday(at))
    case 'usd_per_month':
    case 'tokens_per_month':
      return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1)
    case 'requests_per_minute':
    case 'tokens_per_minute':
      return atMs + (retryAfterSeconds === null ? MINUTE_MS : retryAfterSeconds * 1_000)
    default:
      return null
  }
}

/** A limit by its rule and name, such as `dimension:run usd_total`; amounts of money are dollars. */
interface NamedLevel {
  readonly limit: string
  readonly amount: number
  readonly used: number
  readonly remaining: number
  readonly sinceMs: number | null
}

interface NamedLevelsProps {
  readonly levels: readonly NamedLevel[]
  /** Also shows what each limit counts for. */
  readonly withSubject?: boolean
}

/** A bar for each limit. */
export function NamedLevels({ levels, withSubject = false }: NamedLevelsProps) {
  return (
    <ul className="limits panel">
      {levels.map(({ limit, amount, used, remaining, sinceMs }) => {
        const end = limit.lastIndexOf(' ')
        const [subject, name] = [limit.slice(0, end), limit.slice(end + 1)]
        const text = (value: number): string =>
          name.startsWith('usd') ? `$${value.toFixed(value < 1 ? 6 : 2)}` : count(value)
        return (
          <li key={limit}>
            <Meter
              label={limitName(name)}
              {...{ used, limit: amount }}
              above={
                <p className="limit-name">
                  {limitName(name)}
                  {withSubject ? <span className="soft"> · {ownerText(subject)}</span> : null}
                </p>
              }
            >
              <p className="limit-amount small">
                {text(used)} of {text(amount)} used · {text(remaining)} left
                <Since ms={sinceMs} />
              </p>
            </Meter>
          </li>
        )
      })}
    </ul>
  )
}
