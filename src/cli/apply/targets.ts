/**
 * The places in which `sluice apply` makes its changes: the store of the configuration, or the admin API of a
 * gateway, with its token. Both plan and apply the same documents.
 */
import type { Differences, FreshKey } from '../../accounts/changes/decide.js'
import { readFileSync } from 'node:fs'
import { LABEL_VALUE } from '../../accounts/labels.js'
import type { Plans } from '../../accounts/plans.js'
import { withoutSecret } from '../../control/admin/apply.js'
import {
  importWarnings,
  readDocuments,
  type DocumentFault,
  type DocumentKind,
  type ReadDocuments,
  type WantedObject,
} from '../../control/admin/documents.js'
import type { Holdings } from '../../control/admin/group-documents.js'
import { textIn, without } from '../../accounts/changes/field-types.js'
import {
  planApply,
  runApply,
  type Plan,
  type PlannedChange,
  type Applied,
} from '../../control/admin/plan-and-apply.js'
import { arrayOf, isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { codeWithAdvice } from '../../base/file-access.js'
import { commandActor } from '../accounts.js'
import { UsageError } from '../command.js'
import type { StoreSession } from '../with-store.js'

/** The options with the token of a gateway's admin API. */
interface TokenOptions {
  readonly token?: string | undefined
  readonly tokenFile?: string | undefined
}

/** The token, or null if there is none. Throws `UsageError` for two tokens and for a file without one. */
export function adminTokenOf({ token, tokenFile }: TokenOptions): string | null {
  if (token !== undefined && tokenFile !== undefined) {
    throw new UsageError('--token-file and --token are for one token: remove --token')
  }
  if (tokenFile !== undefined) return tokenIn(tokenFile)
  const { SLUICE_ADMIN_TOKEN: named, SLUICE_TOKEN: former } = process.env
  return [token, named, former].find((each) => (each ?? '').trim() !== '')?.trim() ?? null
}

function tokenIn(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new UsageError(`--token-file: the file "${file}" cannot be read (${codeWithAdvice(error)})`)
  }
  if (/^\S+$/.test(text)) return text
  throw new UsageError(`--token-file: the file "${file}" must contain the token and nothing else`)
}

/** What was planned. */
export interface PlannedResult {
  readonly changes: readonly PlannedChange[]
  readonly unchanged: number
  readonly faults: readonly DocumentFault[]
  /** What does not work yet when it is applied. */
  readonly warnings: readonly string[]
}

/** One of the two targets. */
export interface Target {
  plan(): Promise<PlannedResult>
  /** `fresh`: the secrets of new keys by the place of their document. */
  apply(fresh: ReadonlyMap<number, FreshKey>): Promise<Applied>
}

/** The settings of the command. */
interface TargetSettings {
  readonly values: readonly JsonValue[]
  readonly prune: boolean
  readonly adopt: boolean
  readonly managedBy: string
}

/** Throws `UsageError` for a value that is no label. */
export function checkedManager(text: string): string {
  if (LABEL_VALUE.test(text)) return text
  throw new UsageError('--managed-by must be 1 to 64 printable ASCII characters without spaces and commas')
}

/** The objects of documents and their faults; `plans` null: the server checks the plans. */
export function objectsOf(values: readonly JsonValue[], plans: Plans | null): ReadDocuments {
  return readDocuments(values, plans ?? plansIn(values))
}

/** The plans that the documents name, and the default. */
function plansIn(values: readonly JsonValue[]): Plans {
  const names = values.flatMap((value) => {
    const spec = isObject(value) ? value['spec'] : undefined
    const plan = isObject(spec) ? spec['plan'] : undefined
    return typeof plan === 'string' ? [plan] : []
  })
  const plan = { priceUsd: 0, maxKeys: null }
  return Object.fromEntries(['starter', ...names].map((name) => [name, plan]))
}

/** Whether the command itself writes the secret of the key. */
export function writesSecret(value: JsonValue | undefined): boolean {
  const spec = isObject(value) ? value['spec'] : undefined
  if (!isObject(spec)) return false
  return spec['secret_file'] !== undefined || spec['kubernetes_secret'] !== undefined
}

/** The store of the configuration. */
export function storeTarget(
  { store, plans, acceptsImported }: Pick<StoreSession, 'store' | 'plans' | 'acceptsImported'>,
  { objects, faultyAccounts }: ReadDocuments,
  { values, prune, adopt, managedBy }: TargetSettings,
): Target {
  const wanted = { objects, faultyAccounts, prune, adopt, managedBy }
  const options = { store, plans, now: Date.now, actor: commandActor(), ...wanted }
  let planned: Promise<Plan> | null = null
  const plan = (): Promise<Plan> => (planned ??= planApply(options))
  return {
    async plan() {
      const made = await plan()
      const missing = withoutSecret(made, objects, ({ index }) => writesSecret(values[index]))
      const warnings = importWarnings(objects, acceptsImported)
      return { ...made, faults: [...made.faults, ...missing], warnings }
    },
    async apply(fresh) {
      const known = objects.map((object) => {
        const digest = fresh.get(object.index)?.digest
        return digest === undefined ? object : { ...object, newDigest: digest }
      })
      const made = await plan()
      const byIndex = new Map(known.map((object) => [object.index, object]))
      const groups = made.groups.map((group) => {
        return { ...group, keys: group.keys.map((key) => byIndex.get(key.index) ?? key) }
      })
      return runApply({ ...options, objects: known }, { ...made, groups }, fresh)
    },
  }
}

/** A reply of the admin API that is no success. */
export class ServerRefused extends Error {
  readonly faults: readonly DocumentFault[]
  /** Whether the server may have applied the documents: it did not say. */
  readonly isUnsure: boolean

  constructor(message: string, faults: readonly DocumentFault[], isUnsure: boolean) {
    super(message)
    this.faults = faults
    this.isUnsure = isUnsure
  }
}

const TIMEOUT_MS = 120_000

/** The admin API of a gateway. */
export function serverTarget(
  { url, token }: { readonly url: string; readonly token: string },
  { objects }: ReadDocuments,
  { values, prune, adopt, managedBy }: TargetSettings,
): Target {
  const send = async (documents: readonly JsonValue[], isDryRun: boolean): Promise<JsonObject> => {
    const address = `${url.replace(/\/$/, '').replace(/\/admin\/v1$/, '')}/admin/v1/apply`
    const reply = await fetch(address, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ documents, prune, adopt, dry_run: isDryRun, managed_by: managedBy }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((error: unknown) => {
      throw new ServerRefused(`${address} does not answer: ${reasonOf(error)}`, [], true)
    })
    const body: unknown = await reply.json().catch(() => null)
    if (reply.ok && isObject(body)) return body
    throw refusalOf(reply.status, isObject(body) ? body : {}, address)
  }
  const changesIn = (body: JsonObject): PlannedChange[] => {
    return (['create', 'change', 'remove'] as const).flatMap((action) => {
      const entries = body[action]
      if (!Array.isArray(entries)) return []
      return entries.filter(isObject).map((entry) => changeOf(action, entry, objects))
    })
  }
  // Any digest will do for a plan.
  const planned = 'f'.repeat(64)
  return {
    async plan() {
      const body = await send(
        values.map((value) => withDigest(value, planned)),
        true,
      )
      const warnings = arrayOf(body['warnings']).map(textIn)
      return { changes: changesIn(body), unchanged: Number(body['unchanged'] ?? 0), faults: [], warnings }
    },
    async apply(fresh) {
      const documents = values.map((value, at) => withDigest(value, fresh.get(at)?.digest ?? null))
      const body = await send(documents, false)
      const errors = Array.isArray(body['errors']) ? body['errors'].filter(isObject) : []
      const failures = errors.map((error) => {
        const account = textIn(error['account'])
        const start = `account ${account}: `
        const message = textIn(error['message'])
        return {
          account,
          message: message.startsWith(start) ? message.slice(start.length) : message,
          isUnsure: error['may_be_applied'] !== false,
        }
      })
      const unchanged = Number(body['unchanged'] ?? 0)
      return { changes: changesIn(body), unchanged, failures }
    },
  }
}

/** The document without what only the command handles, with the digest of a new key's secret. */
function withDigest(value: JsonValue, digest: string | null): JsonValue {
  if (!isObject(value) || !isObject(value['spec']) || !writesSecret(value)) return value
  const spec = without(value['spec'], 'secret_file', 'kubernetes_secret')
  return { ...value, spec: { ...spec, ...(digest === null ? {} : { new_secret_sha256: digest }) } }
}

function changeOf(
  action: PlannedChange['action'],
  entry: JsonObject,
  objects: readonly WantedObject[],
): PlannedChange {
  const kind = kindOf(entry['kind'])
  const name = textIn(entry['name'])
  const account = textIn(entry['account'])
  const object = objects.find((each) => {
    return each.kind === kind && each.name === name && each.account === account
  })
  const changes = isObject(entry['changes']) ? entry['changes'] : {}
  const pairs = Object.entries(changes).map(([field, pair]) => {
    const [old = null, next = null] = Array.isArray(pair) ? pair : []
    return [field, [old, next]] as const
  })
  const differences: Differences = Object.fromEntries(pairs)
  const adopted = isObject(entry['adopts']) ? { adopts: holdingsIn(entry['adopts']) } : {}
  return { action, kind, name, account, changes: differences, ...adopted, index: object?.index ?? null }
}

function holdingsIn({ keys, members, parent }: JsonObject): Holdings {
  return {
    keys: arrayOf(keys).map(textIn),
    members: arrayOf(members).map(textIn),
    parent: typeof parent === 'string' ? parent : null,
  }
}

function kindOf(value: unknown): DocumentKind {
  return value === 'Member' || value === 'Key' ? value : 'Account'
}

function refusalOf(status: number, body: JsonObject, address: string): ServerRefused {
  const { detail, errors, field } = body
  const all = Array.isArray(errors) ? errors.filter(isObject) : field === undefined ? [] : [body]
  const faults = all.flatMap((error): DocumentFault[] => {
    const place = /^documents\[(\d+)\]\.?(.*)$/s.exec(textIn(error['field']))
    if (place === null) return []
    const path = pathOf(place[2] ?? '')
    // The command has put it into the document.
    if (path[1] === 'new_secret_sha256') return []
    const start = `${textIn(error['field'])}: `
    const text = textIn(error['detail']).replace(/\.$/, '')
    const message = text.startsWith(start) ? text.slice(start.length) : text
    return [{ index: Number(place[1]), path, atKey: message.startsWith('unknown field'), message }]
  })
  const given = typeof detail === 'string' ? detail : `it replied ${status}`
  // The text of the API tells how to write the header, which is the command's part.
  const text = status === 401 ? 'the token is unknown, expired or revoked.' : given
  return new ServerRefused(`${address}: ${text}`, faults, status < 400 || status >= 500)
}

/** Names of labels may have dots. */
function pathOf(text: string): string[] {
  const [, label] = /^metadata\.labels\.(.+)$/s.exec(text) ?? []
  if (label !== undefined) return ['metadata', 'labels', label]
  return text.split('.').filter((part) => part !== '')
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message
  return error instanceof Error ? error.message : String(error)
}
