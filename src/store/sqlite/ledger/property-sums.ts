/**
 * Sums of entries by properties other than key and model, as rows of `usage_hours` and `usage_days` whose key
 * is `*PROPERTY=VALUE`: of an account, and with an empty account of all accounts together.
 */
import { PROPERTY_MARK, type PropertyName } from '../../usage-queries.js'
import { BUCKET_MS, SUM_COLUMNS, SUM_KEY, TOTALS } from './sum-columns.js'

/** How a property is read from `batch_groups` (roll-up.ts), and the condition for a row to have it. */
interface Origin {
  readonly value: string
  readonly condition: string
  /** For properties with several values. */
  readonly join?: string
}

const ORIGINS: Readonly<Record<PropertyName, Origin>> = {
  upstream: { value: 'upstream', condition: 'upstream IS NOT NULL' },
  format: { value: 'ingress', condition: 'ingress IS NOT NULL' },
  label: {
    // One row for each label; values have no spaces.
    join: `CROSS JOIN json_each('[' || replace(json_quote(labels), ' ', '","') || ']') AS label`,
    value: 'label.value',
    condition: "labels IS NOT NULL AND labels <> ''",
  },
  shadow: { value: 'upstream', condition: 'is_shadow AND upstream IS NOT NULL' },
  account: { value: "account_id || ' ' || coalesce(account_path, '')", condition: 'true' },
}

/** The condition for rows of keys: ids of keys sort after the mark. */
export const ONE_KEY = "key_id >= '+'"
/** The condition for rows by property; the key `*` has the sums of all keys. */
export const ONE_PROPERTY = `key_id > '${PROPERTY_MARK}' AND key_id < '+'`
/** Adds the sums by a property to `batch`. */
function sumBy(property: PropertyName): string {
  const { value, condition, join = '' } = ORIGINS[property]
  // The account is part of the value; its sums are in the rows of all keys.
  const account = property === 'account' ? "''" : 'account_id'
  return `INSERT INTO batch (${SUM_COLUMNS})
    SELECT start_ms, ${account}, '${PROPERTY_MARK}${property}=' || ${value}, model, max(last_at_ms), ${TOTALS}
    FROM batch_groups ${join} WHERE ${condition} GROUP BY 1, 2, 3, 4`
}

const ALL: readonly PropertyName[] = ['upstream', 'format', 'label', 'shadow', 'account']

/** Add the sums by property to `batch`: of each account, and then of all accounts together. */
export const SUM_PROPERTIES: readonly string[] = [
  ...ALL.map(sumBy),
  `INSERT INTO batch (${SUM_COLUMNS})
    SELECT start_ms, '', key_id, model, max(last_at_ms), ${TOTALS}
    FROM batch WHERE account_id <> '' AND ${ONE_PROPERTY} GROUP BY 1, 3, 4`,
]

/** Adds the hours by property that days include already to a table of days that has none. */
export const ADD_PROPERTY_DAYS = `INSERT INTO usage_days (${SUM_COLUMNS})
  SELECT start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}, account_id, key_id, model, max(last_at_ms), ${TOTALS}
  FROM usage_hours WHERE ${ONE_PROPERTY} AND (${SUM_KEY}) <= (SELECT ${SUM_KEY} FROM days_mark) GROUP BY 1, 2, 3, 4`
