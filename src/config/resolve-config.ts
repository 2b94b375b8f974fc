/**
 * Turns the checked values of the file, which have their defaults already, into the `Config` that the code
 * reads, and checks the rules that span several keys.
 */
import { resolve } from 'node:path'
import { isRedisUrl, parseRedisUrl, parseSqliteAddress } from '../store/store-address.js'
import { BUILT_IN_PLANS, isPlanOf } from '../accounts/plans.js'
import type { Config, PlanConfig } from './config.js'
import { checkLimits } from './check-limits.js'
import { repositoryDocs } from './package-file.js'
import type { Finding, Path, ReportFinding } from './config-problem.js'
import { checkGuardrails, pluginsOf, type FileReader } from './check-guardrails.js'
import { checkRoutes } from './check-routes.js'
import { archiveOf, checkArchive } from './schema/archive-schema.js'
import { checkDashboard, dashboardOf } from './schema/dashboard-schema.js'
import { batchesOf, checkFiles, filesOf } from './schema/files-and-batches-schema.js'
import { guardrailsOf } from './schema/guardrails-schema.js'
import { ledgerOf } from './schema/ledger-schema.js'
import { dimensionsOf } from './schema/dimensions-schema.js'
import { checkLogin, loginOf } from './schema/login-schema.js'
import { amountsOf, limitingOf, limitOf } from './schema/limits-schema.js'
import { fileSchema, type FileValues } from './schema/config-file-schema.js'
import { routeOf } from './schema/route-schema.js'
import { section } from './schema/section.js'
import { checkRecord, recordOf } from './schema/record-schema.js'
import { checkServer, serverOf, type ServerContext } from './schema/server-schema.js'
import { checkMetrics, checkTelemetry, metricsOf, notifyOf } from './schema/telemetry-and-notify-schema.js'
import { checkUpstream, isPrivateHost, upstreamOf, type UpstreamContext } from './resolve-upstream.js'
import { isObject } from '../base/json.js'
import { isSecureAddress } from '../http/private-addresses.js'
import type { IdentityValues, WorkloadIdentity } from './schema/identity-schema.js'

/** Inputs for resolving the values, besides the values themselves. */
interface ResolveContext extends UpstreamContext, ServerContext {}

/** The configuration, or the findings if there are any. */
export function resolveConfig(
  values: FileValues,
  context: ResolveContext,
): { config: Config | null; findings: Finding[] } {
  const findings: Finding[] = []
  const report = (path: Path, message: string, suggestion: string | null = null): void => {
    findings.push({ path, message, suggestion })
  }
  checkServer(values.server, context, report)
  const store = storeOf(values.store, context.folder, report)
  for (const [name, upstream] of Object.entries(values.upstreams)) {
    checkUpstream({ name, values: upstream }, context, report)
  }
  checkTelemetry(values, report)
  checkMetrics(values.metrics, report)
  checkDashboard(values.dashboard, (path, message) => report(['dashboard', ...path], message))
  checkIdentities(values.identity, context, report)
  checkLogin(values.login, values.dashboard, report)
  checkRoutes(values.routes, Object.keys(values.upstreams), report)
  checkLimits(values, report)
  checkArchive(values.archive, report)
  checkGuardrails(values, report)
  const plugins = pluginsOf(values.plugins, context, report)
  const ownRuled = Object.entries(values.guardrails)
    .filter(([, { patterns, detect }]) => (patterns ?? detect) !== undefined)
    .map(([guardrail]) => guardrail)
  const hasKey = values.escrow.key !== undefined
  checkRecord(values.record, { hasKey, guardrails: ownRuled }, report)
  checkFiles(values, { hasKey, upstreams: values.upstreams }, report)
  if (findings.length > 0 || store === null) return { config: null, findings }
  return { config: { ...configOf(values, store, context), plugins }, findings }
}

const FORMER_STORE =
  'must not be lmdb:, which is no longer supported: use sqlite:PATH, as in sqlite:./data/sluice.db'
const UNKNOWN_STORE = 'must be sqlite:PATH, as in sqlite:./data/sluice.db, or redis://HOST'

/** The store with an absolute path; null after a finding. */
function storeOf(store: string, folder: string, report: ReportFinding): string | null {
  if (isRedisUrl(store)) {
    const address = parseRedisUrl(store)
    if (!('problem' in address)) return store
    report(['store'], address.problem)
    return null
  }
  const file = parseSqliteAddress(store)
  if (file !== null) {
    if ('path' in file) return `sqlite:${resolve(folder, file.path)}`
    report(['store'], file.problem)
    return null
  }
  const isFormer = store.startsWith('lmdb:')
  report(['store'], isFormer ? FORMER_STORE : UNKNOWN_STORE)
  return null
}

function configOf(values: FileValues, store: string, context: ResolveContext): Omit<Config, 'plugins'> {
  const { auth, escrow, log, plans, responses } = values
  const { shape } = fileSchema
  const server = serverOf(values.server, context.folder)
  return {
    server,
    store,
    auth: section(shape.auth.unwrap(), auth),
    identity: identitiesOf(values.identity, context.folder),
    login: loginOf(values.login),
    responses: section(shape.responses.unwrap(), responses),
    escrow: section(shape.escrow.unwrap(), escrow),
    dashboard: dashboardOf(values.dashboard),
    adminApi: values.admin_api,
    log: {
      ...section(shape.log.unwrap(), log),
      file: log.file === undefined ? null : resolve(context.folder, log.file),
    },
    metrics: metricsOf(values.metrics),
    telemetry: section(shape.telemetry.unwrap(), values.telemetry),
    notify: notifyOf(values.notify, isPrivateHost),
    smtp: values.smtp ?? null,
    docUrl: (values.doc_url ?? repositoryDocs())?.replace(/\/{1,9}$/, '') ?? null,
    onLoss: values.on_loss,
    afterDisconnect: section(shape.after_disconnect.unwrap(), values.after_disconnect),
    ledger: ledgerOf(values.ledger, context.folder, store),
    archive: archiveOf(values.archive, context.folder),
    allowSyntheticUser: values.allow_synthetic_user,
    fetchMedia: section(shape.fetch_media.unwrap(), values.fetch_media),
    record: recordOf(values.record, context.folder),
    files: filesOf(values.files, { folder: context.folder, upstreams: values.upstreams }),
    batches: batchesOf(values.batches),
    cache: section(shape.cache.unwrap(), values.cache),
    upstreams: Object.fromEntries(
      Object.entries(values.upstreams).map(([name, upstream]) => [
        name,
        upstreamOf({ name, values: upstream }, context, values.on_disconnect),
      ]),
    ),
    routes: values.routes.map(routeOf),
    guardrails: guardrailsOf(values.guardrails),
    plans: plansOf(plans),
    dimensions: dimensionsOf(values.dimensions),
    limits: values.limits.map(limitOf),
    limiting: limitingOf(values.limiting, server.workers),
  }
}

/**
 * The plans in the order of the file. A file that changes only built-in plans has all three of them; one that
 * names a plan of its own has exactly those that it names.
 */
function plansOf(values: FileValues['plans']): Record<string, PlanConfig> {
  const builtIn: Readonly<Record<string, PlanConfig>> = BUILT_IN_PLANS
  const hasOwn = Object.keys(values).some((name) => !isPlanOf(builtIn, name))
  const plans: Record<string, PlanConfig> = hasOwn ? {} : { ...builtIn }
  for (const [name, { price_usd, max_keys, limits }] of Object.entries(values)) {
    const { priceUsd, maxKeys } = isPlanOf(builtIn, name) ? (builtIn[name] ?? FREE) : FREE
    plans[name] = {
      priceUsd: price_usd ?? priceUsd,
      ...(price_usd === undefined ? {} : { isPriceSet: true }),
      maxKeys: max_keys === 'unlimited' ? null : (max_keys ?? maxKeys),
      limits: amountsOf(limits),
    }
  }
  return plans
}

const FREE: PlanConfig = { priceUsd: 0, maxKeys: null, limits: {} }

// Resolves `identity:` and checks the rules that the schema cannot express.

/** Reports problems that span several keys, addresses that are not allowed, and unreadable files. */
function checkIdentities(
  identities: readonly IdentityValues[],
  context: FileReader,
  report: ReportFinding,
): void {
  identities.forEach((each, index) => {
    const path: Path = ['identity', index]
    checkKeySource(each, path, context, report)
    for (const other of identities.slice(0, index)) {
      if (other.name === each.name) report([...path, 'name'], 'is a duplicate')
      if (other.issuer !== each.issuer) continue
      const common = each.audience.findIndex((audience) => other.audience.includes(audience))
      if (common === -1) continue
      const problem = `is also an audience of "${other.name}", which has the same issuer`
      report([...path, 'audience', common], problem)
    }
  })
}

function checkKeySource(
  { issuer, jwks_uri: address, jwks_file: file }: IdentityValues,
  path: Path,
  { readFile, whyUnreadable }: FileReader,
  report: ReportFinding,
): void {
  if (address !== undefined && file !== undefined) {
    report([...path, 'jwks_file'], 'must not be set together with jwks_uri')
  }
  if (address !== undefined && !isSecureAddress(address)) {
    report([...path, 'jwks_uri'], ADDRESS_RULE)
  }
  if (file !== undefined) {
    const content = readFile(file)
    if (content === null) report([...path, 'jwks_file'], whyUnreadable(file))
    else if (!isKeySet(content)) report([...path, 'jwks_file'], 'must be a JSON object with keys')
  } else if (address === undefined && !isSecureAddress(issuer)) {
    report([...path, 'issuer'], `${ADDRESS_RULE}, unless jwks_uri or jwks_file is set`)
  }
}

const ADDRESS_RULE = 'must be a URL that starts with https:// (http:// is allowed for loopback)'

function isKeySet(content: string): boolean {
  try {
    const value: unknown = JSON.parse(content)
    return isObject(value) && Array.isArray(value['keys'])
  } catch {
    return false
  }
}

/** The resolved section. */
function identitiesOf(identities: readonly IdentityValues[], folder: string): WorkloadIdentity[] {
  return identities.map(({ limits, jwks_file: file, ...each }) => ({
    ...each,
    limits: amountsOf(limits),
    ...(file === undefined ? {} : { jwks_file: resolve(folder, file) }),
  }))
}
