/**
 * The members of `limits`: one list, which the configuration, the admin API, commands, documents, records and
 * the stores read. A new member is a line here and a counter in the stores.
 */

/** Whole numbers up to these; a million dollars is a ninth of the largest safe number of nano-dollars. */
const MOST = {
  requests: 1_000_000_000,
  tokens: 1_000_000_000_000,
  concurrent: 1_000_000,
  usd: 1_000_000,
  units: 1_000_000_000,
} as const

/** What a limit counts. */
type Counted = keyof typeof MOST

/** What a member of `limits` is. */
interface AnyMember {
  /** In the configuration, in documents and in the admin API; of units, `GROUP UNIT`, which nests there. */
  readonly name: string
  /** In records and in the dashboard's API. */
  readonly field: string
  /** The kind of its demand, and the label of metrics. */
  readonly kind: string
  readonly counts: Counted
  /** `minute` refills evenly, `total` never resets, `running` has no time; the others follow the calendar. */
  readonly window: 'minute' | 'running' | 'day' | 'week' | 'month' | 'total'
  /** The option of commands, without `--`. */
  readonly option: string
  readonly means: string
  /** The unit that it counts, which is its name in the object of units. */
  readonly unit?: string
}

/** The member of limits that is an object of units, and its meaning. */
export const UNIT_LIMITS = {
  name: 'units_per_minute',
  option: 'units-per-minute',
  means:
    'Units other than tokens per minute, each by itself, as in `{ image: 10, audio_second: 600 }`; also the maximum burst. A request reserves its own maximum (of pictures `n`, of a document 1), and its reply corrects it.',
} as const

/** A limit of one unit per minute. */
function unitMember<const Unit extends string, const Field extends string>(
  unit: Unit,
  field: Field,
  means: string,
) {
  return {
    name: `${UNIT_LIMITS.name} ${unit}` as const,
    field,
    kind: `units_${unit}` as const,
    counts: 'units',
    window: 'minute',
    option: UNIT_LIMITS.option,
    means,
    unit,
  } as const satisfies AnyMember
}

/** The limits with a name and a value of their own, in the order in which they are shown. */
export const PLAIN_LIMITS = [
  {
    name: 'requests_per_minute',
    field: 'requestsPerMinute',
    kind: 'requests',
    counts: 'requests',
    window: 'minute',
    option: 'rpm',
    means: 'Requests per minute; also the maximum burst.',
  },
  {
    name: 'tokens_per_minute',
    field: 'tokensPerMinute',
    kind: 'tokens',
    counts: 'tokens',
    window: 'minute',
    option: 'tpm',
    means: 'Tokens per minute, of prompts and replies together.',
  },
  {
    name: 'concurrent',
    field: 'concurrent',
    kind: 'concurrent',
    counts: 'concurrent',
    window: 'running',
    option: 'concurrent',
    means: 'Concurrent requests.',
  },
  {
    name: 'usd_per_day',
    field: 'nanoUsdPerDay',
    kind: 'usd_day',
    counts: 'usd',
    window: 'day',
    option: 'usd-per-day',
    means: 'US dollars per calendar day (UTC).',
  },
  {
    name: 'usd_per_week',
    field: 'nanoUsdPerWeek',
    kind: 'usd_week',
    counts: 'usd',
    window: 'week',
    option: 'usd-per-week',
    means: 'US dollars per calendar week (UTC), from Monday 00:00.',
  },
  {
    name: 'usd_per_month',
    field: 'nanoUsdPerMonth',
    kind: 'usd_month',
    counts: 'usd',
    window: 'month',
    option: 'usd-per-month',
    means: 'US dollars per calendar month (UTC).',
  },
  {
    name: 'usd_total',
    field: 'nanoUsdTotal',
    kind: 'usd_total',
    counts: 'usd',
    window: 'total',
    option: 'usd-total',
    means: 'US dollars in all; never resets.',
  },
  {
    name: 'tokens_per_day',
    field: 'tokensPerDay',
    kind: 'tokens_day',
    counts: 'tokens',
    window: 'day',
    option: 'tokens-per-day',
    means: 'Tokens per calendar day (UTC), of prompts and replies together.',
  },
  {
    name: 'tokens_per_week',
    field: 'tokensPerWeek',
    kind: 'tokens_week',
    counts: 'tokens',
    window: 'week',
    option: 'tokens-per-week',
    means: 'Tokens per calendar week (UTC), from Monday 00:00.',
  },
  {
    name: 'tokens_per_month',
    field: 'tokensPerMonth',
    kind: 'tokens_month',
    counts: 'tokens',
    window: 'month',
    option: 'tokens-per-month',
    means: 'Tokens per calendar month (UTC).',
  },
  {
    name: 'tokens_total',
    field: 'tokensTotal',
    kind: 'tokens_total',
    counts: 'tokens',
    window: 'total',
    option: 'tokens-total',
    means: 'Tokens in all; never resets.',
  },
  {
    name: 'requests_total',
    field: 'requestsTotal',
    kind: 'requests_total',
    counts: 'requests',
    window: 'total',
    option: 'requests-total',
    means: 'Requests in all; never resets.',
  },
] as const satisfies readonly AnyMember[]

/** The limits of units, which are members of one object. */
export const UNIT_MEMBERS = [
  unitMember('image', 'imagesPerMinute', 'Pictures made per minute.'),
  unitMember('audio_second', 'audioSecondsPerMinute', 'Seconds of sound transcribed per minute.'),
  unitMember('character', 'charactersPerMinute', 'Characters of speech per minute.'),
  unitMember('page', 'pagesPerMinute', 'Pages of documents read per minute.'),
  unitMember('search', 'searchesPerMinute', 'Search units of rerank per minute.'),
  unitMember('document', 'documentsPerMinute', 'Documents ranked per minute.'),
  unitMember('line', 'linesPerMinute', 'Lines of batches per minute.'),
] as const

/** All members, in the order in which they are shown. */
export const LIMIT_MEMBERS = [...PLAIN_LIMITS, ...UNIT_MEMBERS] as const

/** A member of `limits`. */
export type LimitMember = (typeof LIMIT_MEMBERS)[number]
/** The name of a member in records. */
export type LimitField = LimitMember['field']
/** The kind of a demand on a limit. */
export type LimitKind = LimitMember['kind']
/** A member that counts in a calendar window, or never resets. */
type WindowMember = Extract<LimitMember, { readonly window: 'day' | 'week' | 'month' | 'total' }>
/** The kinds of amounts of a calendar window, or never reset. */
export type WindowKind = WindowMember['kind']
/** Those of them that count money. */
export type BudgetKind = Extract<WindowMember, { readonly counts: 'usd' }>['kind']
/** Those of them that count tokens or requests. */
export type QuotaKind = Exclude<WindowKind, BudgetKind>

/** The kinds of rates of units, and the units. */
export type UnitRateKind = (typeof UNIT_MEMBERS)[number]['kind']
export type LimitedUnit = (typeof UNIT_MEMBERS)[number]['unit']

// Checked by the type: the list has every kind.
const UNIT_BY_KIND = Object.fromEntries(UNIT_MEMBERS.map(({ kind, unit }) => [kind, unit])) as Readonly<
  Record<UnitRateKind, LimitedUnit>
>

/** The unit that a rate counts. */
export function unitOfKind(kind: UnitRateKind): LimitedUnit {
  return UNIT_BY_KIND[kind]
}

/** Whether the text is the kind of a rate of units. */
export function isUnitRate(kind: unknown): kind is UnitRateKind {
  return typeof kind === 'string' && Object.hasOwn(UNIT_BY_KIND, kind)
}

/** The name in the scope `dimension:NAME`; null for every other scope. */
export function dimensionOf(scope: string): string | null {
  return scope.startsWith(DIMENSION) ? scope.slice(DIMENSION.length) : null
}

const DIMENSION = 'dimension:'

/** An object with a value for each member, by its name, its field or its kind. */
export function byMember<Key extends 'name' | 'field' | 'kind', Value>(
  key: Key,
  valueOf: (member: LimitMember) => Value,
): Record<LimitMember[Key], Value> {
  const entries = LIMIT_MEMBERS.map((member) => [member[key], valueOf(member)] as const)
  // Checked by the type of `key`: the list has every member.
  return Object.fromEntries(entries) as Record<LimitMember[Key], Value>
}

/** The smallest and the largest amount of a member, as the configuration has it. */
export function boundsOf({ counts }: Pick<LimitMember, 'counts'>): {
  readonly min: number
  readonly max: number
} {
  return { min: counts === 'usd' ? 0 : 1, max: MOST[counts] }
}

/** Units of records in one of the configuration: nano-dollars are integers. */
export function unitOf({ counts }: Pick<LimitMember, 'counts'>): number {
  return counts === 'usd' ? 1e9 : 1
}
