/**
 * Sums of entries by properties other than key and model, as rows of `usage_hours` and `usage_days` whose key
 * is `*PROPERTY=VALUE`: of an account, and with an empty account of all accounts together.
 */
import { PROPERTY_MARK, type PropertyName } from '../../usage-queries.js'
import { BUCKET_MS, COUNTER_COLUMNS, COUNTERS, totalOf } from './sum-columns.js'

/** How a property is read from entries, and the condition for an entry to have it. */
interface Origin {
  readonly from: string
  readonly value: string
  readonly condition: string
}

const ENTRY = 'ledger_entries'
const ORIGINS: Readonly<Record<PropertyName, Origin>> = {
  upstream: { from: ENTRY, value: 'upstream', condition: 'upstream IS NOT NULL' },
  format: { from: ENTRY, value: 'ingress', condition: 'ingress IS NOT NULL' },
  label: {
    // One row for each label; values have no spaces.
    from: `${ENTRY} CROSS JOIN json_each('[' || replace(json_quote(labels), ' ', '","') || ']') AS label`,
    value: 'label.value',
    condition: "labels IS NOT NULL AND labels <> ''",
  },
  shadow: {
    from: ENTRY,
    value: 'upstream',
    condition: 'shadow_of IS NOT NULL AND upstream IS NOT NULL',
  },
  account: {
    from: ENTRY,
    value: "account_id || ' ' || coalesce(account_path, '')",
    condition: 'true',
  },
}

/** The condition for rows of keys: ids of keys sort after the mark. */
export const ONE_KEY = "key_id >= '+'"
/** The condition for rows by property; the key `*` has the sums of all keys. */
export const ONE_PROPERTY = `key_id > '${PROPERTY_MARK}' AND key_id < '+'`
/** The columns after the key of a row. */
const COLUMNS = `start_ms, account_id, key_id, model, last_at_ms, ${COUNTER_COLUMNS.join(', ')}`
const TOTALS = COUNTER_COLUMNS.map(totalOf).join(', ')

/** Adds rows to a table of hours: sums of the entries from ?1 (exclusive) to ?2. */
function sumBy(property: PropertyName, table: string): string {
  const { from, value, condition } = ORIGINS[property]
  // The account is part of the value; its sums are in the rows of all keys.
  const account = property === 'account' ? "''" : 'account_id'
  return `INSERT INTO ${table} (${COLUMNS})
    SELECT at_ms / ${BUCKET_MS.hour} * ${BUCKET_MS.hour}, ${account},
      '${PROPERTY_MARK}${property}=' || ${value} AS property, model, max(at_ms),
      ${COUNTERS.map(([, expression]) => expression).join(', ')}
    FROM ${from} WHERE seq > ?1 AND seq <= ?2 AND ${condition} GROUP BY 1, 2, 3, 4`
}

/** Adds the sums of all accounts to a table that has those of each. */
function sumOfAll(table: string): string {
  return `INSERT INTO ${table} (${COLUMNS})
    SELECT start_ms, '', key_id, model, max(last_at_ms), ${TOTALS}
    FROM ${table} WHERE account_id <> '' AND ${ONE_PROPERTY} GROUP BY 1, 3, 4`
}

const ALL: readonly PropertyName[] = ['upstream', 'format', 'label', 'shadow', 'account']

/**
 * Adds the sums by property of the entries from ?1 (exclusive) to ?2 to a table of hours that has none; the
 * last statement has no parameters.
 */
export function propertySums(table: string): { readonly each: string[]; readonly all: string } {
  return { each: ALL.map((property) => sumBy(property, table)), all: sumOfAll(table) }
}

/** Adds the hours by property that days include already to a table of days that has none. */
export const ADD_PROPERTY_DAYS = `INSERT INTO usage_days (${COLUMNS})
  SELECT start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}, account_id, key_id, model, max(last_at_ms), ${TOTALS}
  FROM usage_hours WHERE ${ONE_PROPERTY} AND (start_ms, account_id, key_id, model) <=
    (SELECT start_ms, account_id, key_id, model FROM days_mark) GROUP BY 1, 2, 3, 4`
