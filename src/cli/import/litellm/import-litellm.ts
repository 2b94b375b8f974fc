/** `sluice import litellm`: LiteLLM's `config.yaml` and the keys of its database as files of this gateway. */
import type { Path } from '../../../config/config-problem.js'
import { yamlText } from '../../../config/yaml.js'
import { arrayOf, isObject, objectOf, type JsonObject } from '../../../base/json.js'
import { ImportReport, reportText, summaryOf, type ImportSummary, type ReportItem } from '../report.js'
import { ImportedSecrets, variableOf } from '../secrets.js'
import { readWithIncludes, type ImportSource } from '../source.js'
import type { OutputFile } from '../write-files.js'
import { budgetLimit } from './budgets.js'
import { listAt, mapAt, type ImportContext } from './context.js'
import { readDeployments, type Deployments } from './deployments.js'
import { readGuardrails } from './guardrails.js'
import { readKeyRows, type KeyRows } from './key-rows.js'
import { keyDocuments, type KeyDocuments } from './keys.js'
import { readOtherSettings, type OtherSettings } from './other-settings.js'
import { readRouterRules, type RouterRules } from './router-settings.js'
import { makeRoutes } from './routes.js'
import { ImportedUpstreams } from './upstreams.js'
import { guessedPrefix, vendorOf } from './vendors.js'

/** What the import reads. */
interface ImportInput {
  readonly config: string
  /** JSON lines with keys; null: none. */
  readonly keys: string | null
  readonly env: Readonly<Record<string, string | undefined>>
  readonly nowMs: number
}

/** The files to write, and the report. */
export interface ImportResult {
  readonly files: readonly OutputFile[]
  readonly summary: ImportSummary
}

/** Reads and converts; writes nothing. Throws `InvalidSource`. */
export function importLiteLlm({ config, keys, env, nowMs }: ImportInput): ImportResult {
  const source = readWithIncludes(config)
  const rows = keys === null ? null : readKeyRows(keys)
  const report = new ImportReport(source)
  const secrets = new ImportedSecrets(
    new Set([...variablesIn(source.value), ...impliedVariables(source.value)]),
  )
  readEnvironment(source.value, report, secrets)
  const other = readOtherSettings(source.value, report)
  const rules = readRouterRules(source.value, report, other.cache)
  const context = contextOf({ source, report, secrets, env, nowMs, rules, other })
  const deployments = readDeployments(source.value, context)
  const routes = makeRoutes(deployments, rules, context)
  const guardrails = readGuardrails(source.value, context)
  const gateway = {
    server: { bare_paths: true, ...other.server },
    ...(rows === null ? {} : { auth: { accept_imported_keys: true } }),
    ...other.sections,
    upstreams: context.upstreams.section(),
    routes: [...routes.routes],
    ...guardrails,
    ...limitsSection([...routes.limits, ...other.limits]),
  }
  const documents = rows === null ? null : documentsOf(rows, { source, deployments, context, nowMs })
  const items = [...report.items(source.value), ...keyItems(documents, rows, keys ?? '')]
  const counts = documents?.counts ?? { read: 0, carried: 0, not_carried: 0 }
  const summary = summaryOf(items, routes.models, counts)
  return { files: filesOf({ gateway, documents, context, summary, config }), summary }
}

function limitsSection(limits: readonly JsonObject[]): JsonObject {
  return limits.length === 0 ? {} : { limits: [...limits] }
}

/** The variables that the configuration refers to. */
function variablesIn(value: unknown): Set<string> {
  if (Array.isArray(value)) return new Set(value.flatMap((each: unknown) => [...variablesIn(each)]))
  if (isObject(value)) return new Set(Object.values(value).flatMap((each) => [...variablesIn(each)]))
  const name = variableOf(value)
  return new Set(name === null ? [] : [name])
}

/** The variables of the vendors of entries without a key: LiteLLM reads the key from them. */
function impliedVariables(config: JsonObject): string[] {
  return arrayOf(config['model_list']).flatMap((entry) => {
    const { model, api_key: key = '' } = objectOf(objectOf(entry)['litellm_params'])
    if (typeof model !== 'string' || key !== '') return []
    const prefix = model.includes('/') ? model.slice(0, model.indexOf('/')) : guessedPrefix(model)
    const vendor = vendorOf(prefix ?? '')
    return vendor === null || vendor === 'other' ? [] : vendor.variables
  })
}

/** `environment_variables` becomes `.env`. */
function readEnvironment(config: JsonObject, report: ImportReport, secrets: ImportedSecrets): void {
  for (const [name, value] of Object.entries(mapAt(config, 'environment_variables'))) {
    const at = ['environment_variables', name]
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || typeof value === 'object' || value === undefined) {
      report.notCarried(at, 'is no variable')
    } else if (variableOf(value) !== null) report.ignored(at, 'the variable is set already')
    else {
      secrets.set(name, String(value))
      report.carried(at, '.env')
    }
  }
}

interface ContextParts {
  readonly source: ImportSource
  readonly report: ImportReport
  readonly secrets: ImportedSecrets
  readonly env: ImportInput['env']
  readonly nowMs: number
  readonly rules: RouterRules
  readonly other: OtherSettings
}

function contextOf({ source, report, secrets, env, nowMs, rules, other }: ContextParts): ImportContext {
  const credentials = new Map<string, JsonObject>()
  for (const [index, entry] of listAt(source.value, 'credential_list').entries()) {
    const name = isObject(entry) ? entry['credential_name'] : undefined
    if (!isObject(entry) || typeof name !== 'string') continue
    credentials.set(name, mapAt(entry, 'credential_values'))
    report.carried(['credential_list', index], 'upstreams.api_key')
  }
  return {
    ...{ report, secrets, env, nowMs, upstreams: new ImportedUpstreams(), files: new Map() },
    usual: {
      timeoutSeconds: rules.timeoutSeconds,
      streamTimeoutSeconds: rules.streamTimeoutSeconds,
      litellmParams: rules.litellmParams,
      credentials,
      upstream: { ...rules.upstream, ...other.upstream },
    },
  }
}

interface DocumentParts {
  readonly source: ImportSource
  readonly deployments: Deployments
  readonly context: ImportContext
  readonly nowMs: number
}

function documentsOf(rows: KeyRows, { source, deployments, context, nowMs }: DocumentParts): KeyDocuments {
  return keyDocuments(rows, {
    nowMs,
    groups: accessGroups(source.value, deployments),
    masterKey: masterKeyOf(source.value, context),
    top: topLimits(source.value, context.report),
  })
}

/** The names of models by access group. */
function accessGroups(config: JsonObject, { carried }: Deployments): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  const names = new Set(carried.map(({ name }) => name))
  for (const entry of listAt(config, 'model_list').filter(isObject)) {
    const name = entry['model_name']
    if (typeof name !== 'string' || !names.has(name)) continue
    for (const group of listAt(mapAt(entry, 'model_info'), 'access_groups')) {
      if (typeof group !== 'string') continue
      groups.set(group, [...new Set([...(groups.get(group) ?? []), name])])
    }
  }
  return groups
}

const MASTER: Path = ['general_settings', 'master_key']

/** The master key as a key of apps, if its value is known and the gateway can accept it. */
function masterKeyOf(config: JsonObject, { report, env, secrets }: ImportContext): string | null {
  const given = mapAt(config, 'general_settings')['master_key']
  if (typeof given !== 'string' || given === '') return null
  const variable = variableOf(given)
  const value = variable === null ? given : (secrets.get(variable) ?? env[variable] ?? '')
  if (value === '') {
    report.notCarried(
      MASTER,
      'its variable is not set: set it, and import again, to keep it as a key of apps',
    )
    return null
  }
  if (!/^[!-~]{8,512}$/.test(value)) {
    report.notCarried(MASTER, 'it is shorter than 8 characters: give its apps a key of their own')
    return null
  }
  report.changed(MASTER, 'key litellm-master', 'a key of apps without limits, which administers nothing')
  return value
}

function topLimits(config: JsonObject, report: ImportReport): JsonObject | null {
  const settings = mapAt(config, 'litellm_settings')
  if (settings['max_budget'] === undefined) return null
  const { limits, note } = budgetLimit(settings['max_budget'], settings['budget_duration'])
  const outcome = limits === null ? 'not_carried' : note === null ? 'carried' : 'changed'
  for (const key of ['max_budget', 'budget_duration']) {
    report.claim(['litellm_settings', key], outcome, limits === null ? null : 'account litellm', note)
  }
  return limits
}

function keyItems(documents: KeyDocuments | null, rows: KeyRows | null, file: string): ReportItem[] {
  if (documents === null) return []
  const { others = 0, unknownMembers = 0 } = rows ?? {}
  const ignored = { line: 1, outcome: 'ignored', to: null, file } as const
  return [
    ...documents.notes.map((note) => ({ ...note, file })),
    ...(others === 0
      ? []
      : [{ ...ignored, path: 'lines', note: `${others} lines are no key, team, organization or user` }]),
    ...(unknownMembers === 0
      ? []
      : [{ ...ignored, path: 'members', note: `${unknownMembers} members have no meaning here` }]),
  ]
}

interface FileParts {
  readonly gateway: JsonObject
  readonly documents: KeyDocuments | null
  readonly context: ImportContext
  readonly summary: ImportSummary
  readonly config: string
}

function filesOf({ gateway, documents, context, summary, config }: FileParts): OutputFile[] {
  const env = context.secrets.envText()
  return [
    { name: 'gateway.yaml', text: gatewayText(gateway), isSecret: false },
    ...(documents === null
      ? []
      : [{ name: 'accounts.yaml', text: yamlText(documents.documents), isSecret: false }]),
    ...(env === null ? [] : [{ name: '.env', text: env, isSecret: true }]),
    ...[...context.files].map(([name, text]) => ({ name, text, isSecret: true })),
    { name: 'report.md', text: reportText(config, summary), isSecret: false },
  ]
}

/** The text of `gateway.yaml`: without anchors for parts that occur twice. */
export function gatewayText(gateway: JsonObject): string {
  return `${HEAD}${yamlText([JSON.parse(JSON.stringify(gateway))])}`
}

const HEAD = '# Made by `sluice import`; report.md has what was carried, and what was not.\n'
