/**
 * The documents of `sluice apply` and of `POST /admin/v1/apply`: accounts, members and keys as they should
 * be. Reads them strictly and checks them against each other; every error has the path of the wrong part,
 * from which the command makes a line and a column. Pure.
 */
import {
  DIGEST,
  KEY_FIELDS,
  MEMBER_FIELDS,
  accountFields,
  isShownName,
  KEY_NAME_RULE,
  accountNameFault,
  emailFault,
} from '../../accounts/changes/fields.js'
import { comparableEmail } from '../../accounts/account.js'
import { ACCOUNT_NAME } from '../../accounts/names.js'
import type { Plans } from '../../accounts/plans.js'
import { nearest } from '../../config/config-problem.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { atOnce, type Steps } from '../../base/steps.js'
import { Faults, readObject, readValue, type Fields } from '../../accounts/changes/field-types.js'

/** The kinds of documents, in the order in which those of one account are applied. */
const KINDS = ['Account', 'Member', 'Key'] as const
export type DocumentKind = (typeof KINDS)[number]

/** A checked document. */
export interface WantedObject {
  /** Its place in the list of documents. */
  readonly index: number
  readonly kind: DocumentKind
  readonly name: string
  /** The name of the account: its own, or that of the member or key. */
  readonly account: string
  /** The writable values, defaults and labels included. */
  readonly values: JsonObject
  /** The digest of the secret that the key must have. */
  readonly digest: string | null
  /** The digest of the secret with which a key is made; one that exists keeps its own. */
  readonly newDigest: string | null
  /** Whether the digest is that of a secret which another gateway made; null: not given. */
  readonly imported: boolean | null
}

/** What is applied and does not work yet. `acceptsImported`: `auth.accept_imported_keys` is on. */
export function importWarnings(objects: readonly WantedObject[], acceptsImported: boolean): string[] {
  const count = objects.filter(({ imported }) => imported === true).length
  if (count === 0 || acceptsImported) return []
  const keys = count === 1 ? 'the key' : `the ${count} keys`
  return [`auth.accept_imported_keys is off: the gateway refuses ${keys} with imported: true until it is on`]
}

/** A wrong part of a document. */
export interface DocumentFault {
  readonly index: number
  /** The keys from the document to the part; empty for the document as a whole. */
  readonly path: readonly string[]
  /** Set if the key itself is wrong, and not its value. */
  readonly atKey: boolean
  readonly message: string
}

/** The place for the secret of a new key; only the command handles the first two. */
const SECRET_FIELDS = ['secret_file', 'kubernetes_secret', 'secret_sha256', 'new_secret_sha256'] as const

/** Marks a key whose secret another gateway made. */
const IMPORTED = 'imported'

const TOP = ['apiVersion', 'kind', 'metadata', 'spec']
const METADATA: Readonly<Record<DocumentKind, readonly string[]>> = {
  Account: ['name', 'labels'],
  Member: ['name', 'account', 'labels'],
  Key: ['name', 'account', 'labels'],
}
const API_VERSION = 'sluice/v1'

/** Collects the faults of one document. */
class Reader {
  readonly faults: DocumentFault[] = []
  private readonly index: number

  constructor(index: number) {
    this.index = index
  }

  report(path: readonly string[], message: string, atKey = false): void {
    this.faults.push({ index: this.index, path, atKey, message })
  }

  unknown(path: readonly string[], known: readonly string[]): void {
    const name = path.at(-1) ?? ''
    const best = nearest(name, known)
    const advice = best === null ? `use one of ${known.join(', ')}` : `did you mean "${best}"?`
    this.report(path, `unknown field "${name.slice(0, 64)}": ${advice}`, true)
  }

  /** The faults of fields, at their places below `start`. */
  take(start: readonly string[], { all }: Faults): void {
    for (const { kind, field, detail, fix } of all) {
      const path = field === '' ? start : [...start, ...pathOf(field)]
      const isUnknown = kind === 'unknown_field'
      const advice = withoutDot(fix)
      const unknown = `unknown field "${field.slice(0, 64)}": ${advice.charAt(0).toLowerCase()}${advice.slice(1)}`
      this.report(path, isUnknown ? unknown : sentenceOf(detail, fix), isUnknown)
    }
  }
}

/** `models[0]`, `limits.usd_per_day` → the keys. */
function pathOf(field: string): string[] {
  // Names of labels may have dots.
  const [, map = '', member = ''] = /^(labels)\.(.*)$/s.exec(field) ?? []
  if (map !== '') return [map, member]
  return field.split(/[.[\]]+/).filter((part) => part !== '')
}

/** The place of a field in a document. */
export function fieldPath(field: string): string[] {
  const path = pathOf(field)
  return path[0] === 'labels' ? ['metadata', ...path] : ['spec', ...path]
}

/** A refusal in one sentence: what is wrong, and what to do. */
export function sentenceOf(detail: string, fix: string): string {
  return fix === '' ? withoutDot(detail) : `${withoutDot(detail)}: ${withoutDot(fix)}`
}

function withoutDot(text: string): string {
  return text.replace(/\.$/, '')
}

/** The objects in the values, and every fault of the documents themselves. */
export interface ReadDocuments {
  readonly objects: WantedObject[]
  readonly faults: DocumentFault[]
  /** Names of accounts whose documents have faults: `objects` lacks them, others may refer to them. */
  readonly faultyAccounts: Set<string>
}

/** Reads all documents at once. */
export function readDocuments(values: readonly JsonValue[], plans: Plans): ReadDocuments {
  return atOnce(documentSteps(values, plans))
}

/** Documents that are read in one step. */
const AT_ONCE = 50

/** The same in steps, between which a gateway serves other requests. */
export function* documentSteps(values: readonly JsonValue[], plans: Plans): Steps<ReadDocuments> {
  const objects: WantedObject[] = []
  const faults: DocumentFault[] = []
  const faultyAccounts = new Set<string>()
  const seen = new Map<string, number>()
  for (const [index, value] of values.entries()) {
    if (index % AT_ONCE === AT_ONCE - 1) yield
    const reader = new Reader(index)
    const object = readDocument(value, { reader, plans, index })
    if (object !== null) {
      const identity = JSON.stringify([object.kind, object.account, object.name])
      if (seen.has(identity)) {
        reader.report(['metadata', 'name'], `${titleOf(object)} is in the documents twice`)
      }
      seen.set(identity, index)
      if (reader.faults.length === 0) objects.push(object)
      else if (object.kind === 'Account') faultyAccounts.add(object.name)
    }
    faults.push(...reader.faults)
  }
  return { objects, faults, faultyAccounts }
}

/** `account research`, `key ci of research` */
export function titleOf({ kind, name, account }: Pick<WantedObject, 'kind' | 'name' | 'account'>): string {
  return kind === 'Account' ? `account ${name}` : `${kind.toLowerCase()} ${name} of ${account}`
}

const NO_SECRETS = { digest: null, newDigest: null, imported: null }
const NO_VALUES = { values: {}, ...NO_SECRETS }

interface Reading {
  readonly reader: Reader
  readonly plans: Plans
  readonly index: number
}

function readDocument(value: JsonValue, reading: Reading): WantedObject | null {
  const { reader, index } = reading
  if (!isObject(value)) {
    reader.report([], 'is not a document: write kind, metadata and spec')
    return null
  }
  for (const name of Object.keys(value)) if (!TOP.includes(name)) reader.unknown([name], TOP)
  const version = value['apiVersion']
  if (version !== undefined && version !== API_VERSION) {
    reader.report(['apiVersion'], `must be ${API_VERSION}`)
  }
  const kind = KINDS.find((each) => each === value['kind'])
  if (kind === undefined) {
    const given = value['kind']
    const best = typeof given === 'string' ? nearest(given, KINDS) : null
    const advice = best === null ? '' : `: did you mean "${best}"?`
    reader.report(['kind'], `must be one of ${KINDS.join(', ')}${advice}`)
    return null
  }
  const metadata = mapAt(value, 'metadata', reader, true)
  const spec = mapAt(value, 'spec', reader, kind === 'Member')
  for (const name of Object.keys(metadata ?? {})) {
    if (!METADATA[kind].includes(name)) reader.unknown(['metadata', name], METADATA[kind])
  }
  const name = metadata === null ? null : nameIn(kind, metadata, reader)
  const owner = metadata === null || kind === 'Account' ? name : accountIn(metadata, reader)
  const from = { spec: spec ?? {}, metadata: metadata ?? {}, name: name ?? '' }
  const read = spec === null ? NO_VALUES : readSpec(kind, from, reading)
  if (name === null || owner === null) return null
  return { index, kind, name, account: owner, ...read }
}

function mapAt(value: JsonObject, name: string, reader: Reader, isRequired: boolean): JsonObject | null {
  const map = value[name]
  if (isObject(map)) return map
  if ((map === undefined || map === null) && !isRequired) return {}
  reader.report(
    map === undefined ? [] : [name],
    map === undefined ? `"${name}" is required` : 'must be a map',
  )
  return null
}

function nameIn(kind: DocumentKind, { name }: JsonObject, reader: Reader): string | null {
  const path = ['metadata', 'name']
  if (name === undefined) {
    reader.report(['metadata'], '"name" is required')
    return null
  }
  const rules = {
    Account: accountNameFault,
    Member: emailFault,
    Key: (text: string) => (isShownName(text) ? null : KEY_NAME_RULE),
  } as const
  const fault = rules[kind](typeof name === 'string' ? name : '')
  if (fault === null && typeof name === 'string') return kind === 'Member' ? comparableEmail(name) : name
  reader.report(path, sentenceOf(...(fault ?? ['This is no text.', 'Write one.'])))
  return null
}

function accountIn({ account }: JsonObject, reader: Reader): string | null {
  if (typeof account === 'string' && ACCOUNT_NAME.test(account)) return account
  if (account === undefined) reader.report(['metadata'], '"account" is required')
  else reader.report(['metadata', 'account'], 'must be the name of an account')
  return null
}

function readSpec(
  kind: DocumentKind,
  from: { readonly spec: JsonObject; readonly metadata: JsonObject; readonly name: string },
  { reader, plans }: Reading,
): Pick<WantedObject, 'values' | keyof GivenSecrets> {
  const { spec, metadata, name } = from
  const secrets = kind === 'Key' ? readSecrets(spec, reader) : NO_SECRETS
  const all = fieldsOf(kind, name, plans)
  const { labels: labelField, ...specFields } = all
  const own = Object.entries(spec).filter(([field]) => {
    return kind !== 'Key' || !(field === IMPORTED || SECRET_FIELDS.some((each) => each === field))
  })
  const faults = new Faults()
  // The list of known fields in an error has the secrets, too.
  const extra = kind === 'Key' ? [...SECRET_FIELDS.slice(0, 3), IMPORTED] : []
  for (const [field] of own) {
    if (!Object.hasOwn(specFields, field)) {
      reader.unknown(['spec', field], [...Object.keys(specFields), ...extra])
    }
  }
  const known = own.filter(([field]) => Object.hasOwn(specFields, field))
  const values = readObject(specFields, Object.fromEntries(known), { current: null, faults })
  reader.take(['spec'], faults)
  const labelFaults = new Faults()
  const labels =
    metadata['labels'] === undefined || labelField === undefined
      ? {}
      : readValue(labelField.type, metadata['labels'], { path: 'labels', faults: labelFaults })
  reader.take(['metadata'], labelFaults)
  return { ...secrets, values: { ...values, labels: labels ?? {} } }
}

/** The fields that a document may set. */
function fieldsOf(kind: DocumentKind, name: string, plans: Plans): Fields {
  const all = kind === 'Account' ? accountFields(name, plans) : kind === 'Member' ? MEMBER_FIELDS : KEY_FIELDS
  return Object.fromEntries(
    Object.entries(all).filter(([, { readOnly, writeOnly }]) => {
      return readOnly !== true && writeOnly !== true
    }),
  )
}

type GivenSecrets = Pick<WantedObject, 'digest' | 'newDigest' | 'imported'>

function readSecrets(spec: JsonObject, reader: Reader): GivenSecrets {
  const given = SECRET_FIELDS.filter((name) => spec[name] !== undefined)
  const [, second] = given
  if (second !== undefined) {
    reader.report(['spec', second], `a key has one of ${SECRET_FIELDS.slice(0, 3).join(', ')}`, true)
  }
  const faults = new Faults()
  const digestAt = (name: string): string | null => {
    const value = spec[name]
    return value === undefined ? null : (readValue(DIGEST, value, { path: name, faults }) ?? null)
  }
  const digests = { digest: digestAt('secret_sha256'), newDigest: digestAt('new_secret_sha256') }
  reader.take(['spec'], faults)
  const file = spec['secret_file']
  if (file !== undefined && (typeof file !== 'string' || file === '')) {
    reader.report(['spec', 'secret_file'], 'must be the path of a file')
  }
  checkKubernetesSecret(spec['kubernetes_secret'], reader)
  return { ...digests, imported: importedIn(spec, reader) }
}

function importedIn(
  { [IMPORTED]: imported, secret_sha256: digest }: JsonObject,
  reader: Reader,
): boolean | null {
  if (imported === undefined || imported === null) return digest === undefined ? null : false
  if (typeof imported !== 'boolean') {
    reader.report(['spec', IMPORTED], 'must be true or false')
  } else if (imported && digest === undefined) {
    reader.report(['spec', IMPORTED], 'needs secret_sha256, the SHA-256 of the secret', true)
  }
  return imported === true
}

const SECRET_MEMBERS = ['name', 'namespace', 'key']

function checkKubernetesSecret(secret: JsonValue | undefined, reader: Reader): void {
  if (secret === undefined) return
  const path = ['spec', 'kubernetes_secret']
  if (!isObject(secret)) {
    reader.report(path, 'must be a map with name, namespace and key')
    return
  }
  for (const name of Object.keys(secret)) {
    if (!SECRET_MEMBERS.includes(name)) reader.unknown([...path, name], SECRET_MEMBERS)
  }
  for (const name of SECRET_MEMBERS) {
    const value = secret[name]
    const isFit = typeof value === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/.test(value)
    if (value === undefined) reader.report(path, `"${name}" is required`)
    else if (!isFit) reader.report([...path, name], 'must be a name of Kubernetes')
  }
}
