/**
 * Sums of entries by properties other than key and model, as rows of `usage_hours` and `usage_days` whose key
 * is `*PROPERTY=VALUE`: of an account, and with an empty account of all accounts together.
 */
import { PROPERTY_MARK, type PropertyName } from '../../usage-queries.js'
import { BUCKET_MS, COUNTER_COLUMNS, COUNTERS, totalOf } from './sum-columns.js'

/** How a property is read from rows of `batch_groups`, and the condition for a row to have it. */
interface Origin {
  readonly from: string
  readonly value: string
  readonly condition: string
}

const GROUPS = 'batch_groups'
const ORIGINS: Readonly<Record<PropertyName, Origin>> = {
  upstream: { from: GROUPS, value: 'upstream', condition: 'upstream IS NOT NULL' },
  format: { from: GROUPS, value: 'ingress', condition: 'ingress IS NOT NULL' },
  label: {
    // One row for each label; values have no spaces.
    from: `${GROUPS} CROSS JOIN json_each('[' || replace(json_quote(labels), ' ', '","') || ']') AS label`,
    value: 'label.value',
    condition: "labels IS NOT NULL AND labels <> ''",
  },
  shadow: {
    from: GROUPS,
    value: 'upstream',
    condition: 'is_shadow AND upstream IS NOT NULL',
  },
  account: {
    from: GROUPS,
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

/** What tells the entries of two groups apart, besides the hour. */
const GROUPED_BY = 'account_id, key_id, model, upstream, ingress, labels, is_shadow, account_path'
/**
 * The entries of a batch, added up by all that sums are made by: so each entry is read and counted once, and
 * every other sum is a total of a few groups.
 */
export const GROUPS_TABLE = `CREATE TEMP TABLE ${GROUPS} (start_ms, ${GROUPED_BY}, last_at_ms,
  ${COUNTER_COLUMNS.join(', ')})`
/** Fills the table from the entries from ?1 (exclusive) to ?2. */
export const GROUP_ENTRIES = `INSERT INTO ${GROUPS}
  SELECT at_ms / ${BUCKET_MS.hour} * ${BUCKET_MS.hour}, account_id, key_id, model, upstream, ingress, labels,
    shadow_of IS NOT NULL, account_path, max(at_ms),
    ${COUNTERS.map(([, expression]) => expression).join(', ')}
  FROM ledger_entries WHERE seq > ?1 AND seq <= ?2 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9`

/** Adds the sums by a property to `batch`. */
function sumBy(property: PropertyName): string {
  const { from, value, condition } = ORIGINS[property]
  // The account is part of the value; its sums are in the rows of all keys.
  const account = property === 'account' ? "''" : 'account_id'
  return `INSERT INTO batch (${COLUMNS})
    SELECT start_ms, ${account}, '${PROPERTY_MARK}${property}=' || ${value}, model, max(last_at_ms), ${TOTALS}
    FROM ${from} WHERE ${condition} GROUP BY 1, 2, 3, 4`
}

const ALL: readonly PropertyName[] = ['upstream', 'format', 'label', 'shadow', 'account']

/** Add the sums by property to `batch`: of each account, and then of all accounts together. */
export const SUM_PROPERTIES: readonly string[] = [
  ...ALL.map(sumBy),
  `INSERT INTO batch (${COLUMNS})
    SELECT start_ms, '', key_id, model, max(last_at_ms), ${TOTALS}
    FROM batch WHERE account_id <> '' AND ${ONE_PROPERTY} GROUP BY 1, 3, 4`,
]

/** Adds the hours by property that days include already to a table of days that has none. */
export const ADD_PROPERTY_DAYS = `INSERT INTO usage_days (${COLUMNS})
  SELECT start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}, account_id, key_id, model, max(last_at_ms), ${TOTALS}
  FROM usage_hours WHERE ${ONE_PROPERTY} AND (start_ms, account_id, key_id, model) <=
    (SELECT start_ms, account_id, key_id, model FROM days_mark) GROUP BY 1, 2, 3, 4`
