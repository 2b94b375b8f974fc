/**
 * End users and spend tags of LiteLLM as dimensions and their limits. LiteLLM 1.110.2 reads an end user from
 * a header of its own, from `user_header_name` or the `customer` of `user_header_mappings`, then from the
 * body (`proxy/auth/auth_utils.py`); a budget without a duration never resets.
 */
import { MAX_DIMENSIONS } from '../../../config/schema/dimensions-schema.js'
import { isObject, type JsonObject } from '../../../base/json.js'
import type { Path } from '../../../config/config-problem.js'
import type { ImportReport } from '../report.js'
import { budgetLimit } from './budgets.js'
import { isTrue, listAt, mapAt, numberIn, textAt, textsIn } from './context.js'

const SETTINGS = 'litellm_settings'
const GENERAL = 'general_settings'
const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/
const OWN_HEADERS = ['x-litellm-end-user-id', 'x-litellm-customer-id']
const IN_BODY = ['body:user', 'body:litellm_metadata.user', 'body:metadata.user_id']

/** The lists `dimensions` and `limits`. */
interface EndUsers {
  readonly dimensions: readonly JsonObject[]
  readonly limits: readonly JsonObject[]
}

/** Reads them; without a setting about end users or tags there are none. */
export function readEndUsers(config: JsonObject, report: ImportReport): EndUsers {
  const settings = mapAt(config, SETTINGS)
  const general = mapAt(config, GENERAL)
  const headers = readHeaders(general, report)
  const limits = readLimits(settings, report)
  const isRequired = isTrue(general['enforce_user_param'])
  if (isRequired) report.carried([GENERAL, 'enforce_user_param'], 'dimensions.required')
  const dimensions: JsonObject[] = []
  if (headers.length > 0 || Object.keys(limits).length > 0 || isRequired) {
    dimensions.push({
      name: 'end_user',
      from: [...OWN_HEADERS, ...headers].map((name) => `header:${name}`).concat(IN_BODY),
      ...(isRequired ? { required: true } : {}),
    })
  }
  readTags({ general, settings }, dimensions, report)
  const scoped = Object.keys(limits).length > 0 ? [{ scope: 'dimension:end_user', ...limits }] : []
  return { dimensions, limits: scoped }
}

/** The headers with an end user. */
function readHeaders(general: JsonObject, report: ImportReport): string[] {
  const headers: string[] = []
  const read = (at: Path, name: string): void => {
    if (name === '') return
    if (!HEADER.test(name)) {
      report.notCarried(at, 'is not the name of a header')
      return
    }
    headers.push(name.toLowerCase())
    report.carried(at, 'dimensions.from')
  }
  read([GENERAL, 'user_header_name'], textAt(general, 'user_header_name'))
  for (const [index, entry] of mappingsIn(general)) {
    if (textAt(entry, 'litellm_user_role') !== 'customer') continue
    read([GENERAL, 'user_header_mappings', index], textAt(entry, 'header_name'))
  }
  return [...new Set(headers)]
}

function mappingsIn(general: JsonObject): [number, JsonObject][] {
  return [...listAt(general, 'user_header_mappings').entries()].flatMap(([index, entry]) =>
    isObject(entry) ? [[index, entry] as [number, JsonObject]] : [],
  )
}

/** The limits of each end user. */
function readLimits(settings: JsonObject, report: ImportReport): JsonObject {
  const defaults = mapAt(settings, 'default_end_user_params')
  const at = [SETTINGS, 'default_end_user_params']
  const limits: JsonObject = {}
  for (const [from, to] of [
    ['rpm_limit', 'requests_per_minute'],
    ['tpm_limit', 'tokens_per_minute'],
    ['max_parallel_requests', 'concurrent'],
  ] as const) {
    const number = numberIn(defaults[from])
    if (number === null || number < 1) continue
    limits[to] = Math.round(number)
    report.carried([...at, from], `limits.${to}`)
  }
  const ofAll = budgetAt(settings, [SETTINGS], 'max_end_user_budget', report)
  const own = budgetAt(defaults, at, 'max_budget', report)
  return { ...limits, ...ofAll, ...own }
}

function budgetAt(map: JsonObject, at: Path, key: string, report: ImportReport): JsonObject {
  const { limits, note } = budgetLimit(map[key], map['budget_duration'])
  if (limits === null) {
    if (note !== null) report.notCarried([...at, key], note)
    return {}
  }
  for (const each of [key, 'budget_duration']) {
    if (map[each] === undefined) continue
    report.claim([...at, each], note === null ? 'carried' : 'changed', 'limits', note)
  }
  return limits
}

interface TagParts {
  readonly general: JsonObject
  readonly settings: JsonObject
}

/** Headers that tag spend, or name a user of LiteLLM, as a dimension each. */
function readTags({ general, settings }: TagParts, dimensions: JsonObject[], report: ImportReport): void {
  const tags = textsIn(settings['extra_spend_tag_headers']).map(
    (header, index) => [[SETTINGS, 'extra_spend_tag_headers', index], header] as const,
  )
  const users = mappingsIn(general)
    .filter(([, entry]) => textAt(entry, 'litellm_user_role') !== 'customer')
    .map(
      ([index, entry]) => [[GENERAL, 'user_header_mappings', index], textAt(entry, 'header_name')] as const,
    )
  for (const [at, header] of [...tags, ...users]) {
    const name = nameOf(header)
    const isTaken = dimensions.some((each) => each['name'] === name)
    if (!HEADER.test(header) || name === '' || isTaken)
      report.notCarried(at, 'no dimension can have its name')
    else if (dimensions.length === MAX_DIMENSIONS)
      report.notCarried(at, `there are ${MAX_DIMENSIONS} dimensions at most`)
    else {
      dimensions.push({ name, from: [`header:${header.toLowerCase()}`] })
      report.carried(at, `dimensions ${name}`)
    }
  }
}

/** `X-Portal-User-Id` is `portal_user_id`. Names with another meaning in limits are empty. */
function nameOf(header: string): string {
  const name = header
    .toLowerCase()
    .replace(/^x-/, '')
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+/, '')
    .slice(0, 32)
  return ['team', 'key', 'account', 'model', 'upstream'].includes(name) ? '' : name
}
