/**
 * `sluice apply`: makes accounts, members and keys as documents describe them. Prints the plan, then applies
 * it; `control/admin/plan-and-apply.ts` has the rules.
 */
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { planJson, RESERVED_MANAGER, warningsJson } from '../../control/admin/apply.js'
import { isOwnName } from '../../accounts/names.js'
import { freshKey, type FreshKey } from '../../accounts/changes/decide.js'
import { titleOf, type ReadDocuments, type WantedObject } from '../../control/admin/documents.js'
import { textIn } from '../../accounts/changes/field-types.js'
import { holdingsText, type PlannedChange, type Applied } from '../../control/admin/plan-and-apply.js'
import type { Plans } from '../../accounts/plans.js'
import { yamlText } from '../../config/yaml.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { hideSecrets } from '../../hide-secrets.js'
import { codeWithAdvice } from '../../base/file-access.js'
import { configOption, declare, repeated, requiredConfig, UsageError } from '../command.js'
import {
  processTerminal,
  withStore,
  type OpenStore,
  type StoreSession,
  type Terminal,
} from '../with-store.js'
import { errorLine, placed, readFiles, type FileDocument, type PlacedError } from './read-files.js'
import {
  placeSecret,
  secretFileFaults,
  takenFileFaults,
  writeSecret,
  type SecretFile,
} from './secret-files.js'
import {
  adminTokenOf,
  checkedManager,
  objectsOf,
  ServerRefused,
  serverTarget,
  storeTarget,
  writesSecret,
  type PlannedResult,
  type Target,
} from './targets.js'

/** `sluice apply`. */
export function command(open: OpenStore = withStore, terminal = processTerminal) {
  return declare({
    name: 'apply',
    summary: 'make accounts, members and keys as files describe them',
    description: `
Makes accounts, members and keys as YAML documents describe them (kind: Account, Member, Key). Prints a plan
(+ create, ~ change, - remove), then applies it: an account with its members and keys is one transaction. A
second run changes nothing. Errors of the documents have a file, line and column, and nothing is applied.

Secrets of new keys go to the 'secret_file' of their document (mode 0600), or as a Kubernetes Secret to
standard output ('kubernetes_secret'; everything else then goes to standard error).`,
    exitStatus:
      '0 applied, or no differences with --dry-run; 2 differences with --dry-run; 1 everything else.',
    example: 'sluice apply -f platform/ --config config/gateway.yaml --prune --yes',
  })
    .requiredOption(
      '-f, --file <PATH>',
      'a file, a folder (*.yaml and *.yml in it and below, hidden ones are skipped), or - for standard input; may be repeated',
      repeated,
    )
    .option('--dry-run', 'print the plan only')
    .option(
      '--prune',
      'revoke keys, remove members and disable accounts that have the label managed-by=NAME and that no document names; needs an answer or --yes',
    )
    .option(
      '--adopt',
      'take over accounts that apply did not make (without the label managed-by); otherwise they are refused',
    )
    .option('--yes', 'do not ask')
    .option('--managed-by <NAME>', 'the label of what is created', checkedManager, 'apply')
    .addOption(configOption().makeOptionMandatory(false))
    .option('--server <URL>', 'the admin API of a gateway, instead of the store of the configuration')
    .option(
      '--token-file <FILE>',
      'a file with its token; without it, the variable SLUICE_ADMIN_TOKEN (formerly SLUICE_TOKEN); scopes: accounts:write and keys:write',
    )
    .option('--json', 'print JSON: { create, change, remove, unchanged, applied, errors }')
    .option(
      '--token <TOKEN>',
      'its token itself, which other users of this machine can see: use a file or the variable',
    )
    .action(async (options, self) => {
      const isBoth = options.server !== undefined && self.getOptionValueSource('config') === 'cli'
      if (isBoth) throw new UsageError("'sluice apply' accepts --config or --server, not both")
      process.exitCode = await applyFiles(options, { open, terminal })
    })
}

interface ApplyOptions {
  readonly file: readonly string[]
  readonly dryRun?: true | undefined
  readonly prune?: true | undefined
  readonly adopt?: true | undefined
  readonly yes?: true | undefined
  readonly managedBy: string
  readonly config?: string | undefined
  readonly server?: string | undefined
  readonly token?: string | undefined
  readonly tokenFile?: string | undefined
  readonly json?: true | undefined
}

async function applyFiles(
  values: ApplyOptions,
  { open, terminal }: { readonly open: OpenStore; readonly terminal: Terminal },
): Promise<number> {
  const { file: paths, server, managedBy, prune = false, adopt = false } = values
  if (prune && !values.dryRun && !values.yes && !process.stdin.isTTY) {
    throw new UsageError('--prune without a terminal needs --yes')
  }
  const { documents, errors } = await readFiles(paths, terminal)
  const work = new Work(values, terminal, documents)
  const settings = {
    values: documents.map(({ value }) => value),
    ...{ prune, managedBy, adopt },
  }
  const readObjects = (plans: Plans | null): ReadDocuments => {
    const read = objectsOf(settings.values, plans)
    return { ...read, faults: [...read.faults, ...secretFileFaults(documents)] }
  }
  if (errors.length > 0) {
    // What refers to a document that cannot be read is not checked.
    const { faults } = readObjects(null)
    return work.fail([...errors, ...faults.map((fault) => placed(documents, fault))])
  }
  if (server !== undefined) {
    const token = adminTokenOf(values)
    if (token === null) {
      throw new UsageError('--server needs --token-file FILE, or the variable SLUICE_ADMIN_TOKEN')
    }
    const read = readObjects(null)
    return work.run(serverTarget({ url: server, token }, read, settings), read)
  }
  if (isOwnName(managedBy)) throw new UsageError(`--managed-by: ${RESERVED_MANAGER}`)
  const toStore = (session: StoreSession): Promise<number> => {
    const read = readObjects(session.plans)
    return work.run(storeTarget(session, read, settings), read)
  }
  return open(requiredConfig('sluice apply', values.config), toStore, { terminal, mustExist: false })
}

/** One run of the command after its documents were read. */
class Work {
  private readonly values: ApplyOptions
  private readonly terminal: Terminal
  private readonly documents: readonly FileDocument[]
  /** Manifests alone go to standard output, if there are any. */
  private readonly hasManifests: boolean
  private warnings: readonly string[] = []

  constructor(values: ApplyOptions, terminal: Terminal, documents: readonly FileDocument[]) {
    this.values = values
    this.terminal = terminal
    this.documents = documents
    this.hasManifests = documents.some(({ value }) => secretOf(value) !== null)
  }

  /** Prints the errors; nothing was applied. */
  fail(errors: readonly PlacedError[]): number {
    const inOrder = [...errors].sort((a, b) => {
      const byPlace = a.line - b.line || a.column - b.column
      return a.file === b.file ? byPlace : this.orderOf(a.file) - this.orderOf(b.file)
    })
    for (const error of inOrder) this.terminal.err(hideSecrets(errorLine(error)))
    if (this.values.json === true) {
      const none = planJson({ changes: [], unchanged: 0 }, false)
      this.print(JSON.stringify({ ...none, errors: inOrder }))
    }
    return 1
  }

  async run(target: Target, { objects, faults }: ReadDocuments): Promise<number> {
    const isDryRun = this.values.dryRun === true
    const isJson = this.values.json === true
    try {
      const plan = await target.plan()
      const made = plan.changes.flatMap(({ action, kind, index }) => {
        return action === 'create' && kind === 'Key' && index !== null ? [index] : []
      })
      const all = [...faults, ...plan.faults, ...takenFileFaults(this.documents, made)]
      if (all.length > 0) return this.fail(all.map((fault) => placed(this.documents, fault)))
      if (!isJson) this.printPlan(plan)
      this.warnings = plan.warnings
      for (const warning of plan.warnings) this.terminal.err(`sluice: warning: ${warning}`)
      if (isDryRun) {
        if (isJson) this.print(this.json(planJson(plan, false)))
        return plan.changes.length === 0 ? 0 : 2
      }
      if (!(await this.isConfirmed(plan))) return 1
      return await this.apply(target, plan, objects)
    } catch (error) {
      if (!(error instanceof ServerRefused)) throw error
      // The server repeats the faults of the documents themselves.
      const all = [...faults, ...error.faults].map((fault) => placed(this.documents, fault))
      if (all.length > 0) return this.fail([...new Map(all.map((at) => [errorLine(at), at])).values()])
      this.terminal.err(hideSecrets(`sluice: ${error.message}`))
      return 1
    }
  }

  private async apply(
    target: Target,
    { changes }: PlannedResult,
    objects: readonly WantedObject[],
  ): Promise<number> {
    const made = changes.filter(({ action, kind }) => action === 'create' && kind === 'Key')
    const fresh = new Map<number, FreshKey>()
    const files = new Map<number, SecretFile>()
    for (const change of made) {
      const { index } = change
      const document = index === null ? undefined : this.documents[index]
      if (index === null || document === undefined || !writesSecret(document.value)) continue
      const key = freshKey()
      fresh.set(index, key)
      try {
        const file = writeSecret(document, titleOf(change), key)
        if (file !== null) files.set(index, file)
      } catch (error) {
        discard(files.values())
        const message = `the file cannot be written (${codeWithAdvice(error)})`
        return this.fail([{ file: document.file, ...document.at(['spec', 'secret_file'], false), message }])
      }
    }
    const applied = await target.apply(fresh).catch((error: unknown) => {
      // After a refusal no key has one of the secrets.
      if (error instanceof ServerRefused && !error.isUnsure) discard(files.values())
      else for (const file of files.values()) this.keepSecret(file)
      throw error
    })
    return this.finish(applied, { fresh, files, objects }) ? 0 : 1
  }

  /**
   * Prints the result, and the manifests of keys that were made; puts the files of secrets into place.
   * Returns whether all of it succeeded.
   */
  private finish({ changes, unchanged, failures }: Applied, { fresh, files, objects }: Secrets): boolean {
    const created = new Set(
      changes.flatMap(({ action, kind, index }) => {
        return action === 'create' && kind === 'Key' && index !== null ? [index] : []
      }),
    )
    const manifests: JsonObject[] = []
    for (const { index } of objects) {
      const secret = fresh.get(index)?.secret ?? null
      const wanted = secretOf(this.documents[index]?.value)
      if (created.has(index) && secret !== null && wanted !== null) manifests.push(manifestOf(wanted, secret))
    }
    const open = new Set(failures.flatMap(({ account, isUnsure }) => (isUnsure ? [account] : [])))
    const unsure = new Set(objects.flatMap(({ index, account }) => (open.has(account) ? [index] : [])))
    const misplaced = this.placeSecrets(files, created, unsure)
    for (const error of misplaced) this.terminal.err(errorLine(error))
    for (const { account, message } of failures) {
      this.terminal.err(hideSecrets(`Failed: account ${account}: ${message}`))
    }
    if (this.values.json === true) {
      const errors = failures.map(({ account, message }) => {
        const at = objects.find((object) => object.account === account)
        const place =
          at === undefined
            ? { file: null, line: null, column: null }
            : placed(this.documents, {
                index: at.index,
                path: ['metadata', 'name'],
                atKey: false,
                message,
              })
        return { ...place, message: `account ${account}: ${message}` }
      })
      const isApplied = failures.length === 0
      const all = [...errors, ...misplaced]
      this.print(this.json({ ...planJson({ changes, unchanged }, isApplied), errors: all }))
    } else {
      const count = (action: string): number => changes.filter((each) => each.action === action).length
      const [made, changed, removed] = ['create', 'change', 'remove'].map(count)
      this.print(`Applied: ${made} created, ${changed} changed, ${removed} removed, ${unchanged} unchanged.`)
    }
    if (manifests.length > 0) this.terminal.out(yamlText(manifests).replace(/\n$/, ''))
    return failures.length === 0 && misplaced.length === 0
  }

  /**
   * Moves the secrets of keys that were made to their places, keeps those of keys that may have been made
   * (`unsure`), and removes the others. Returns an error for each that cannot be moved: it stays where it is.
   */
  private placeSecrets(
    files: ReadonlyMap<number, SecretFile>,
    created: ReadonlySet<number>,
    unsure: ReadonlySet<number>,
  ): PlacedError[] {
    const errors: PlacedError[] = []
    for (const [index, file] of files) {
      if (!created.has(index)) {
        if (unsure.has(index)) this.keepSecret(file)
        else discard([file])
        continue
      }
      const code = placeSecret(file)
      if (code === null) continue
      const message = `the file cannot be written (${code}): the secret of the new ${file.name} is in ${file.ownPath}`
      errors.push(placed(this.documents, { index, path: ['spec', 'secret_file'], atKey: false, message }))
    }
    return errors
  }

  /** The target may have made the key before it failed: a store that does not answer may have written it. */
  private keepSecret({ name, ownPath }: SecretFile): void {
    this.terminal.err(`sluice: if ${name} was made, its secret is in ${ownPath}`)
  }

  private printPlan({ changes, unchanged }: PlannedResult): void {
    for (const change of changes) this.print(planLine(change))
    const count = (action: string): number => changes.filter((each) => each.action === action).length
    const [create, change, remove] = ['create', 'change', 'remove'].map(count)
    this.print(`Plan: ${create} to create, ${change} to change, ${remove} to remove, ${unchanged} unchanged.`)
  }

  private async isConfirmed({ changes }: PlannedResult): Promise<boolean> {
    const { prune, yes } = this.values
    const removed = changes.filter(({ action }) => action === 'remove').length
    if (prune !== true || yes === true || removed === 0) return true
    const prompt = createInterface({ input: process.stdin, output: process.stderr })
    try {
      const reply = await prompt.question(`Remove ${removed} objects? Only "yes" is accepted: `)
      return reply.trim() === 'yes'
    } finally {
      prompt.close()
    }
  }

  private json(result: object): string {
    return JSON.stringify({ ...result, ...warningsJson(this.warnings) })
  }

  private print(line: string): void {
    if (this.hasManifests) this.terminal.err(line)
    else this.terminal.out(line)
  }

  private orderOf(file: string): number {
    return this.documents.findIndex((document) => document.file === file)
  }
}

/** Removes files of secrets that no key has. */
function discard(files: Iterable<SecretFile>): void {
  for (const { ownPath } of files) rmSync(ownPath, { force: true })
}

interface Secrets {
  readonly fresh: ReadonlyMap<number, FreshKey>
  readonly files: ReadonlyMap<number, SecretFile>
  readonly objects: readonly WantedObject[]
}

const SIGNS = { create: '+', change: '~', remove: '-' } as const

/** `~ account search (limits.usd_per_day: 50 → 80)` */
function planLine({ action, kind, name, account, changes, adopts }: PlannedChange): string {
  const title = titleOf({ kind, name, account })
  const fields = Object.entries(changes).map(([field, [old, next]]) => {
    return field === 'secret' ? 'secret' : `${field}: ${shown(old)} → ${shown(next)}`
  })
  const details = action === 'change' && fields.length > 0 ? ` (${fields.join(', ')})` : ''
  const adopted = adopts === undefined ? '' : `, adopted (${holdingsText(adopts)})`
  return `${SIGNS[action]} ${title}${details}${adopted}`
}

function shown(value: JsonValue): string {
  if (value === null) return 'none'
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function secretOf(value: JsonValue | undefined): JsonObject | null {
  const spec = isObject(value) ? value['spec'] : undefined
  const secret = isObject(spec) ? spec['kubernetes_secret'] : undefined
  return isObject(secret) ? secret : null
}

function manifestOf({ name, namespace, key }: JsonObject, secret: string): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: name ?? null, namespace: namespace ?? null },
    type: 'Opaque',
    stringData: { [textIn(key)]: secret },
  }
}
