/**
 * `sluice connect`: prints the settings that point a client at the gateway, or merges them into its files.
 * Never prints or writes a key.
 */
import { Argument } from '@commander-js/extra-typings'
import { CLIENTS, KEY_ENV, type Client, type ConnectionTarget } from '../../config/client-settings.js'
import type { Catalogue } from '../../config/config.js'
import { didYouMean } from '../../config/config-problem.js'
import { loadConfig, readCatalogue, readText } from '../../config/load-config.js'
import { packageFile } from '../../config/package-file.js'
import { MODEL_NAME } from '../../formats/chat/model-facts.js'
import { problemLines } from '../problem-lines.js'
import { configOption, declare, repeated, UsageError } from '../command.js'
import { table } from '../print-table-or-json.js'
import { processTerminal, type StoreSession, type Terminal } from '../with-store.js'
import { LoginError } from '../login/login-client.js'
import { validToken } from '../login/valid-token.js'
import { clientJson, clientText } from '../../config/connect/client-text.js'
import { exampleModels, modelsNamed, readModels, type ClientModels } from '../../config/connect/key-models.js'
import { SettingsError } from '../../config/connect/settings-error.js'
import {
  BACKUP,
  changesOf,
  diffText,
  isConfirmed,
  undoingOf,
  writeFiles,
  type FileChange,
} from './write-settings.js'

interface ConnectOptions {
  readonly model?: readonly string[] | undefined
  readonly url?: string | undefined
  readonly keyEnv: string
  readonly login?: true | undefined
  readonly write?: true | undefined
  readonly undo?: true | undefined
  readonly yes?: true | undefined
  readonly list?: true | undefined
  readonly config?: string | undefined
  readonly json?: true | undefined
}

/** `sluice connect`. */
export function command(terminal: Terminal = processTerminal) {
  return declare({
    name: 'connect',
    summary: 'print the settings that point a client at the gateway',
    description: `
Prints the base URL, the variables and the settings file of a client. 'connect --list' names the clients.
The key itself is never printed or written: settings name the variable that holds it.

--write merges the settings into the client's files and shows the differences first: other members,
comments and their order stay, and the former file is kept as FILE${BACKUP}. --undo restores the files
from before that, with the changes that others made since, and shows the differences first, too.

Without --model, the models are those that the key in the variable may use, read from the gateway's
GET /v1/models, or else two examples. The first model is the client's default.`,
    exitStatus: '0 success, 1 a file cannot be changed or was not written, 2 wrong usage.',
    example: `export SLUICE_KEY=sk_…
sluice connect codex --url https://llm.example.com --write
sluice connect codex --url https://llm.example.com --undo
sluice connect claude-code --model claude-sonnet-5-5 --json`,
  })
    .addArgument(new Argument('[CLIENT]', 'the client, as --list names it'))
    .option('--model <MODEL>', 'a model that the client shall offer; may be repeated', repeated)
    .option(
      '--url <URL>',
      'the gateway without a path (default: dashboard.public_url of the configuration, else the variable SLUICE_URL, else http://localhost:PORT)',
    )
    .option('--key-env <NAME>', 'the variable that holds the key', KEY_ENV)
    .option('--login', "use the credential of a person who signed in, by the client's helper command")
    .option('--write', "merge the settings into the client's files, after a question")
    .option('--undo', "restore the client's files from before --write, after a question")
    .option('--yes', 'do not ask')
    .option('--list', 'list the clients')
    .addOption(configOption().makeOptionMandatory(false))
    .option(
      '--json',
      'print one JSON object: { client, title, base_url, model, env, files: [{ path, format, content, merge }], steps, notes, helper }; with --list [{ client, title }]',
    )
    .action(async (name, options) => {
      process.exitCode = options.list
        ? listClients(terminal, options.json === true)
        : await connect(clientNamed(name), options, terminal)
    })
}

/** The client with that name. Throws `UsageError`. */
export function clientNamed(name: string | undefined): Client {
  const names = CLIENTS.map((client) => client.name)
  if (name === undefined) throw new UsageError(`'sluice connect' needs one of: ${names.join(', ')}`)
  const client = CLIENTS.find((each) => each.name === name)
  if (client !== undefined) return client
  const hint = didYouMean(name, names)
  throw new UsageError(`Unknown client "${name}"${hint}: 'sluice connect --list' names the clients`)
}

function listClients(terminal: Terminal, isJson: boolean): number {
  const rows = CLIENTS.map(({ name, title }) => ({ client: name, title }))
  if (isJson) terminal.out(JSON.stringify(rows))
  else terminal.out(table([['CLIENT', 'PROGRAM'], ...rows.map(({ client, title }) => [client, title])]))
  return 0
}

async function connect(client: Client, options: ConnectOptions, terminal: Terminal): Promise<number> {
  checkOptions(options)
  const byLogin = options.login === true
  if (byLogin && !client.hasHelper) {
    terminal.err(
      `sluice: ${client.title} has no helper command: it reads its key from a variable, without --login`,
    )
    return 1
  }
  const surroundings = surroundingsOf(options)
  if ('problems' in surroundings) {
    terminal.err(surroundings.problems)
    return 1
  }
  const { url, catalogue } = surroundings
  if (options.undo === true) return undo(client, url, { options, terminal })
  const models = await modelsFor(client, { options, url, catalogue, terminal })
  const target: ConnectionTarget = { url, keyEnv: options.keyEnv, models, hasBudget: null, byLogin }
  if (options.json === true) terminal.out(JSON.stringify(clientJson(client, target)))
  else if (options.write !== true) terminal.out(clientText(client, target))
  return options.write === true ? write(client, { target, options, terminal }) : 0
}

/** Throws `UsageError`. */
function checkOptions({ keyEnv, model: models = [], write, undo, json, yes }: ConnectOptions): void {
  if (!/^[A-Za-z_]\w{0,127}$/.test(keyEnv)) {
    throw new UsageError('--key-env must be the name of a variable: letters, digits and _')
  }
  const bad = models.find((model) => !MODEL_NAME.test(model))
  if (bad !== undefined) throw new UsageError('--model must be 1 to 256 printable characters')
  if (undo === true && (write === true || json === true)) {
    throw new UsageError('--undo cannot be combined with --write or --json')
  }
  if ((write === true || undo === true) && yes !== true && !process.stdin.isTTY) {
    throw new UsageError(`--${undo === true ? 'undo' : 'write'} without a terminal needs --yes`)
  }
}

interface Surroundings {
  readonly url: string
  readonly catalogue: Catalogue
}

/** The gateway's address and the catalogue; a configuration is read only if one is named. */
function surroundingsOf({ url, config: path }: ConnectOptions): Surroundings | { problems: string } {
  const given = url === undefined ? null : checkedUrl('--url', url)
  if (path !== undefined && path !== '') {
    const loaded = loadConfig(path, process.env)
    if (!loaded.ok) return { problems: problemLines(loaded.errors) }
    return { url: given ?? gatewayUrl(loaded.config), catalogue: loaded.catalogue }
  }
  const file = packageFile('config/models.yaml')
  const { catalogue } = readCatalogue(file, readText(file) ?? '')
  if (catalogue === null)
    return { problems: `sluice: the file ${file} is damaged: install the package again` }
  return { url: given ?? gatewayUrl(null), catalogue }
}

const DEFAULT_PORT = 8080

/** The address of the gateway for its clients, without a path. Throws `UsageError`. */
export function gatewayUrl(config: Pick<StoreSession['gateway'], 'dashboard' | 'server'> | null): string {
  const { publicUrl = null } = config?.dashboard ?? {}
  if (publicUrl !== null) return publicUrl
  const { SLUICE_URL: named = '' } = process.env
  if (named !== '') return checkedUrl('SLUICE_URL', named)
  const scheme = (config?.server.tls ?? null) === null ? 'http' : 'https'
  return `${scheme}://localhost:${String(config?.server.port ?? DEFAULT_PORT)}`
}

/** The origin of an address without a path. Throws `UsageError`. */
export function checkedUrl(source: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search + url.hash === ''
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`${source} must be an address, as in https://llm.example.com`)
  }
  if (url.pathname !== '/') {
    throw new UsageError(
      `${source} must have no path: write ${url.origin}, clients get the path that they need`,
    )
  }
  return url.origin
}

interface ModelSources {
  readonly options: ConnectOptions
  readonly url: string
  readonly catalogue: Catalogue
  readonly terminal: Terminal
}

async function modelsFor(
  client: Client,
  { options, url, catalogue, terminal }: ModelSources,
): Promise<ClientModels> {
  const named = modelsNamed(options.model ?? [], catalogue)
  if (named !== null) return named
  const key = await credentialOf(options, url)
  const read = typeof key === 'string' ? await readModels(client, { url, key }) : key
  if (!('problem' in read)) return read
  const examples = exampleModels(client, catalogue)
  const ids = examples.map(({ id }) => id).join(' and ')
  terminal.err(`sluice: ${read.problem}: ${ids} are examples; name yours with --model`)
  return examples
}

/** The key of the variable, or a token of the person who signed in; or why there is none. */
async function credentialOf(
  { keyEnv, login }: ConnectOptions,
  url: string,
): Promise<string | { readonly problem: string }> {
  const key = process.env[keyEnv] ?? ''
  if (login !== true) return key === '' ? { problem: `${keyEnv} is not set` } : key
  try {
    return await validToken(url)
  } catch (error) {
    if (error instanceof LoginError) return { problem: error.message }
    throw error
  }
}

interface Writing {
  readonly target: ConnectionTarget
  readonly options: ConnectOptions
  readonly terminal: Terminal
}

async function write(client: Client, { target, options, terminal }: Writing): Promise<number> {
  const { files } = client.settings(target)
  const say = (line: string): void => (options.json === true ? terminal.err(line) : terminal.out(line))
  if (files.length === 0) return noFiles(client, terminal)
  return withSettingsError(terminal, async () => {
    const changes = changesOf(files, target.url)
    if (changes.length === 0) {
      say(`${files.map(({ path }) => path).join(' and ')}: nothing to change`)
      return 0
    }
    if (!(await apply(changes, { options, say, terminal }))) return 1
    for (const { path, former, text, backup } of changes) {
      if (text !== former) say(`Wrote ${path}`)
      if (backup === 'made') say(`The former file is ${path}${BACKUP}`)
    }
    say(
      target.byLogin === true
        ? `Run sluice login ${target.url}`
        : `Set ${Object.keys(client.settings(target).env).join(', ')} where ${client.title} starts.`,
    )
    return 0
  })
}

/** Restores the files of the client. */
async function undo(
  client: Client,
  url: string,
  { options, terminal }: Omit<Writing, 'target'>,
): Promise<number> {
  const say = (line: string): void => terminal.out(line)
  const settings = client.settings({ url, keyEnv: options.keyEnv, models: [{ id: '' }], hasBudget: null })
  if (settings.files.length === 0) return noFiles(client, terminal)
  return withSettingsError(terminal, async () => {
    const { changes, others } = undoingOf(client, url)
    const names = settings.files.map(({ path }) => path).join(' and ')
    if (changes.length === 0 && others.length > 0) {
      terminal.err(
        `sluice: ${names}: no former file is kept, and the settings name ${others.join(' and ')}, not ${url}: --url names the gateway`,
      )
      return 1
    }
    if (changes.length === 0) {
      say(`${names}: nothing to undo`)
      return 0
    }
    if (!(await apply(changes, { options, say, terminal }))) return 1
    for (const { path, text } of changes) say(text === null ? `Removed ${path}` : `Restored ${path}`)
    say(`Unset ${Object.keys(settings.env).join(', ')} where ${client.title} starts.`)
    return 0
  })
}

function noFiles(client: Client, terminal: Terminal): number {
  terminal.err(
    `sluice: ${client.title} has no file to write: 'sluice connect ${client.name}' prints the steps`,
  )
  return 1
}

interface Applying {
  readonly options: ConnectOptions
  readonly say: (line: string) => void
  readonly terminal: Terminal
}

/** Shows the changes and makes them; false if the user does not want them. */
async function apply(changes: readonly FileChange[], { options, say, terminal }: Applying): Promise<boolean> {
  say(diffText(changes))
  const isWanted = options.yes === true || (await isConfirmed(changes.length))
  if (isWanted) writeFiles(changes)
  else terminal.err('sluice: nothing was written')
  return isWanted
}

async function withSettingsError(terminal: Terminal, work: () => Promise<number>): Promise<number> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    terminal.err(`sluice: ${error.message}`)
    return 1
  }
}
