/**
 * Goal: modules import modules of lower rows and, in one row, types of their neighbours. The tables here are
 * the only place with these rules.
 * Method: compares the import lines of every file in `src` with the tables; a small tree that breaks each
 * rule is reported.
 */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { isObject, objectOf } from '../../src/base/json.js'
import { cycles, filesBelow, importsOf, type Import, type Source } from './source-tree.js'

/**
 * A module is a folder of `src`, or a subfolder or file of one that is listed itself. It imports modules of
 * lower rows; the lowest is the first. A part of a folder is in a lower row than the rest if modules below
 * it import the part: the configuration checks guardrail rules, for example, and limits and the ledger share
 * the arithmetic of the store.
 */
const ROWS: readonly (readonly string[])[] = [
  // What several rooms need and none owns; imports nothing of ours.
  ['base'],
  ['errors', 'hide-secrets'],
  ['accounts/labels', 'formats/chat'],
  [
    'formats/wire',
    'accounts/account',
    'accounts/allowed-models',
    'accounts/names',
    'config/bounded-file',
    'config/package-file',
    'http/private-addresses',
    'store/archive/archive-address',
    'store/limit-arithmetic',
    'store/seal',
    'store/sqlite/driver',
  ],
  [
    'formats',
    'emulator',
    'policy/rules',
    'observe/log-fields',
    'observe/notification',
    'observe/sign-webhook',
  ],
  [
    'accounts',
    'config',
    // Parts of the gateway that do not need the rest of it; the dashboard reads routes and upstreams.
    'gateway/reasoning',
    'gateway/routing',
    'gateway/upstreams',
    'http',
    'ledger',
    'limits',
    'observe/export-spans',
    'observe/log',
    'observe/metrics',
    'observe/mails',
    'observe/webhooks',
    'store',
  ],
  ['policy', 'store/archive', 'usage'],
  ['gateway', 'control'],
  ['process'],
  ['cli'],
  ['main'],
]

/** The row whose modules are siblings: they import types from each other, and the values listed next. */
const SIBLINGS = ROWS[5] ?? []

/** The few values that cross between siblings, each with its reason. */
const SIBLING_VALUES: Readonly<Record<string, string>> = {
  'ledger/spool.ts → store/records/entry-text.ts':
    'an entry has one text form, in the spool and in the store',
  'store/records/entry-text.ts → ledger/entry.ts':
    'the fields of an entry are in one table, for its text and for the rows of SQLite',
  'store/records/correct-entry.ts → http/request-id.ts':
    'the form of a request id is in one place; late entries are found by its time',
  'store/sqlite/ledger/archive-feed.ts → ledger/spool.ts':
    'an entry that waits has one text form with its reservation, in the spool and in the store',
  'store/redis/ledger/archive-feed.ts → ledger/spool.ts':
    'an entry that waits has one text form with its reservation, in the spool and in the store',
  'store/redis/ledger/entry-names.ts → http/request-id.ts':
    'the form of a request id is in one place; entries are named by it',
  'store/sqlite/ledger/entry-row.ts → http/request-id.ts':
    'the form of a request id is in one place; rows have its bytes',
  'store/sqlite/ledger/entry-row.ts → ledger/entry.ts':
    'the fields of an entry are in one table, for its text and for the rows of SQLite',
  'config/load-config.ts → http/read-tls-files.ts':
    'the configuration and the listener check certificate files with one function',
  'config/schema/identity-schema.ts → accounts/workload-identity/claim-expressions.ts':
    'expressions are parsed by one function, for checking the file and for tokens',
  'config/resolve-config.ts → accounts/plans.ts':
    'the built-in plans are those of a file without plans, and those that accounts keep',
  'config/check-limits.ts → accounts/plans.ts': 'rules may name built-in plans',
  'limits/find-limits.ts → accounts/limit-raises.ts': 'the limits of a key or account at a time',
  'limits/find-limits.ts → accounts/plans.ts':
    'keys and requests look the plan of an account up with one function',
  'limits/unmatched-rules.ts → gateway/routing/router.ts':
    'what a route strips of the name of a model is decided in one place',
  'limits/unmatched-rules.ts → store/list-all.ts':
    'rules are compared with all accounts and keys, which one place reads page by page',
  'accounts/members.ts → store/list-all.ts':
    'the user of an identity is looked for among all users, which one place reads page by page',
  'accounts/changes/audit-text.ts → config/schema/limits-schema.ts':
    'limits have one spelling, in the file and in the audit trail',
  'accounts/changes/fields.ts → config/schema/limits-schema.ts':
    'limits have one spelling, in the file and at every door of changes',
  'accounts/changes/decide.ts → config/schema/limits-schema.ts':
    'limits have one spelling, in the file and at every door of changes',
  'accounts/changes/field-types.ts → config/config-problem.ts':
    'an unknown name gets the nearest one as advice, in the file and in objects',
  'accounts/changes/decide.ts → http/request-id.ts': 'entries of the audit trail have ids as requests have',
  'accounts/changes/change-keys.ts → store/list-all.ts': 'keys are read page by page, which one place does',
  'accounts/former-holder.ts → store/list-all.ts': 'keys are read page by page, which one place does',
  'config/resolve-config.ts → store/store-address.ts':
    'the address of a store is parsed by one function, for checking the file and for opening',
}

/** Modules that a module may not import; most of them are in lower rows. */
const FORBIDDEN: Readonly<Record<string, readonly string[]>> = {
  // Two independent readings of a provider's page find misreadings.
  emulator: ['formats'],
  accounts: ['formats', 'emulator'],
  config: ['emulator'],
  http: ['formats', 'emulator'],
  ledger: ['emulator'],
  'observe/log': ['formats', 'emulator'],
  'observe/metrics': ['formats', 'emulator'],
  'gateway/reasoning': ['formats', 'emulator'],
  'gateway/routing': ['formats', 'emulator'],
  store: ['formats', 'emulator'],
  'gateway/upstreams': ['formats', 'emulator'],
  gateway: ['emulator'],
  control: ['formats', 'emulator'],
}

/** Which files may import a package. */
const PACKAGES: Readonly<Record<string, readonly RegExp[]>> = {
  // Loaded only if an upstream has an identity at that cloud.
  '@aws-sdk/credential-providers': [/^gateway\/upstreams\/identities\/credential-sources\.ts$/],
  '@azure/identity': [/^gateway\/upstreams\/identities\/credential-sources\.ts$/],
  'google-auth-library': [/^gateway\/upstreams\/identities\/credential-sources\.ts$/],
  // Loaded only if an archive is configured.
  '@clickhouse/client': [/^store\/archive\/clickhouse\/clickhouse-engine\.ts$/],
  pg: [/^store\/archive\/postgres\/postgres-engine\.ts$/],
  'pg-copy-streams': [/^store\/archive\/postgres\/postgres-engine\.ts$/],
  // Commander with the types of its options.
  '@commander-js/extra-typings': [/^cli\//],
  '@node-rs/argon2': [/^accounts\/password\.ts$/],
  // Loaded only if traces are exported.
  '@opentelemetry/api': [
    /^observe\/export-spans\.ts$/,
    /^gateway\/report\/(?:request-spans|span-content)\.ts$/,
  ],
  '@opentelemetry/core': [/^observe\/export-spans\.ts$/, /^gateway\/report\/request-spans\.ts$/],
  '@opentelemetry/exporter-trace-otlp-http': [/^observe\/export-spans\.ts$/],
  '@opentelemetry/exporter-trace-otlp-proto': [/^observe\/export-spans\.ts$/],
  '@opentelemetry/resources': [/^observe\/export-spans\.ts$/],
  '@opentelemetry/sdk-trace-base': [/^observe\/export-spans\.ts$/],
  '@photostructure/sqlite': [/^store\/sqlite\/driver\.ts$/],
  // Through the package with its types.
  commander: [],
  // The differences that `sluice connect --write` shows, and --undo applies.
  diff: [/^cli\/connect\/(?:write|undo)-settings\.ts$/],
  fzstd: [/^http\/zstd-thread\.ts$/],
  'http-proxy-3': [/^http\/native-proxy\.ts$/],
  ioredis: [/^store\/redis\/connection\//],
  // Loaded only if workload identities are configured.
  jose: [/^accounts\/workload-identity\/verify-token\.ts$/],
  // Changes settings files of editors in place.
  'jsonc-parser': [/^config\/connect\/(?:merge|own)-settings\.ts$/],
  // Loaded only if mails are configured.
  nodemailer: [/^observe\/mails\.ts$/],
  'openid-client': [/^control\/sign-in\/identity-provider\.ts$/],
  pino: [/^observe\/log\.ts$/],
  re2js: [/^policy\/rules\/expressions\.ts$/],
  'prom-client': [/^observe\/metrics\//],
  undici: [
    /^gateway\/upstreams\/(?:connection-pool|request-queue|media-fetcher|upstreams)\.ts$/,
    /^policy\/guard-server\.ts$/,
  ],
  // Loaded when a client opens the first WebSocket of Responses.
  ws: [/^gateway\/responses-socket\/responses-sockets?\.ts$/],
  yaml: [
    /^config\/yaml\.ts$/,
    /^config\/edit-catalogue\.ts$/,
    /^config\/connect\/(?:merge|own)-settings\.ts$/,
  ],
  zod: [
    /^accounts\/changes\/(?:field-types|fields)\.ts$/,
    /^cli\/(?:restart|demo)\.ts$/,
    /^config\//,
    /^cli\/plan\/plan\.ts$/,
    /^control\/admin\//,
    /^control\/dashboard\/schema\//,
    /^ledger\/entry\.ts$/,
    /^store\/records\//,
    /^control\/dashboard\/routing\/(?:api-router|route)\.ts$/,
  ],
}

/** The longest module that contains a file. */
function moduleOf(path: string): string {
  const file = path.replace(/\.ts$/, '')
  const holding = ROWS.flat().filter((name) => file === name || file.startsWith(`${name}/`))
  return holding.sort((a, b) => b.length - a.length)[0] ?? file
}

function rowOf(module: string): number {
  return ROWS.findIndex((row) => row.includes(module))
}

/** The format that a file belongs to; none for the files directly in `formats`. */
function dialectOf(path: string): string | undefined {
  const [folder, name, file] = path.split('/')
  return folder === 'formats' && file !== undefined ? name : undefined
}

/** Imports of no fixed name: files of the operator. */
const OPEN_IMPORTS: readonly string[] = ['policy/plugins.ts']

function breach(from: string, used: Import): string | undefined {
  if (used.target === '?' && OPEN_IMPORTS.includes(from)) return undefined
  if (used.isPackage) return packageBreach(from, used)
  const [own, other] = [moduleOf(from), moduleOf(used.target)]
  if (rowOf(own) === -1) return 'is in no row of the table'
  if (rowOf(other) === -1) return 'imports what is in no row of the table'
  if (own === other) return dialectBreach(from, used.target)
  if (FORBIDDEN[own]?.includes(other) === true) return `${own} never imports ${other}`
  if (rowOf(own) > rowOf(other)) {
    return own === 'config' && other === 'formats' && !used.isType
      ? 'config uses dialects by name only: import a type'
      : undefined
  }
  if (rowOf(own) < rowOf(other)) return 'the arrow points up'
  if (!SIBLINGS.includes(own)) return 'neighbours of this row do not import each other'
  if (used.isType || `${from} → ${used.target}` in SIBLING_VALUES) return undefined
  return 'siblings import types of each other, no values'
}

function dialectBreach(from: string, target: string): string | undefined {
  const [own, other] = [dialectOf(from), dialectOf(target)]
  if (own === undefined || own === other) return undefined
  if (other === undefined) {
    // The interface that a dialect implements, and the tables of what vendors take.
    const allowed = ['formats/dialect.ts', 'formats/vendors.ts']
    return allowed.includes(target) ? undefined : 'a dialect does not import the list'
  }
  return 'a dialect never imports another one'
}

function packageBreach(from: string, { target }: Import): string | undefined {
  if (target.startsWith('node:')) return undefined
  const places = PACKAGES[target]
  if (places === undefined) return 'this package has no place in the table'
  return places.some((path) => path.test(from)) ? undefined : 'this file may not import this package'
}

function breaches(sources: readonly Source[]): string[] {
  const found = sources.flatMap((source) =>
    importsOf(source).flatMap((used) => {
      const why = breach(source.path, used)
      const where = `${source.path}:${String(used.line)}`
      return why === undefined ? [] : [`${where} imports ${used.target}: ${why}`]
    }),
  )
  return [...found, ...cycles(sources)]
}

/** The dashboard's web page is a separate program with its own tables: `dashboard-imports.test.ts`. */
const sources = filesBelow('src', '.ts').filter(({ path }) => !path.startsWith('dashboard/web/'))

void t.test('every import of the tree follows the tables', (t) => {
  t.ok(sources.length > 100, 'the tree is read')
  t.strictSame(breaches(sources), [])
  t.end()
})

void t.test('src has at most 17 rooms', (t) => {
  const rooms = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory())
  t.ok(rooms.length <= 17, 'a reader looks for a concept in one of few rooms')
  t.end()
})

void t.test('every import names a file of the tree', (t) => {
  const paths = new Set(sources.map(({ path }) => path))
  const lost = sources.flatMap((source) =>
    importsOf(source)
      .filter(({ isPackage, target }) => !isPackage && !paths.has(target))
      .map(({ target }) => `${source.path} imports ${target}`),
  )
  t.strictSame(lost, [], 'an import that is not understood is not checked')
  t.end()
})

void t.test('every line of the tables is used', (t) => {
  const lines = sources.flatMap((source) => importsOf(source).map((used) => ({ ...used, from: source.path })))
  for (const pair of Object.keys(SIBLING_VALUES)) {
    t.ok(
      lines.some(
        ({ from, target, isType }) =>
          !isType && `${from} → ${target}` === pair && rowOf(moduleOf(from)) === rowOf(moduleOf(target)),
      ),
      pair,
    )
  }
  for (const [name, places] of Object.entries(PACKAGES)) {
    for (const path of places) {
      t.ok(
        lines.some(({ from, target }) => target === name && path.test(from)),
        `${name} in ${path.source}`,
      )
    }
  }
  const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'))
  const dependencies = isObject(manifest) ? objectOf(manifest['dependencies']) : {}
  t.strictSame(Object.keys(dependencies).sort(), Object.keys(PACKAGES).sort(), 'every dependency')
  t.end()
})

const BROKEN: readonly { name: string; files: Record<string, string>; reports: RegExp }[] = [
  {
    name: 'an arrow up',
    files: { 'formats/wire/a.ts': "import { x } from '../../gateway/b.js'" },
    reports: /a\.ts:1 imports gateway\/b\.ts: the arrow points up/,
  },
  {
    name: 'an arrow up for a type',
    files: { 'formats/chat/a.ts': "import type { X } from '../wire/b.js'" },
    reports: /points up/,
  },
  {
    name: 'an arrow up over several lines',
    files: {
      'formats/wire/a.ts': "\nimport {\n  x,\n  type Y,\n} from '../../process/ops-listener.js'",
    },
    reports: /a\.ts:2 .*points up/,
  },
  {
    name: 'a re-export',
    files: { 'formats/wire/a.ts': "export * from '../../observe/log/log.js'" },
    reports: /points up/,
  },
  {
    name: 'a dynamic import',
    files: { 'formats/wire/a.ts': "const x = await import('../../observe/log/log.js')" },
    reports: /points up/,
  },
  {
    name: 'a dynamic import of no fixed name',
    files: { 'formats/wire/a.ts': 'const x = await import(name)' },
    reports: /imports \?/,
  },
  {
    name: 'one dialect in another',
    files: { 'formats/gemini/a.ts': "import type { X } from '../anthropic/wire.js'" },
    reports: /never imports another/,
  },
  {
    name: 'the list of dialects in a dialect',
    files: { 'formats/gemini/a.ts': "import { upstreamCodecOf } from '../index.js'" },
    reports: /does not import the list/,
  },
  {
    name: 'a value of a sibling',
    files: { 'store/a.ts': "import { type X, y } from '../accounts/b.js'" },
    reports: /no values/,
  },
  {
    name: "a dialect's value in the configuration",
    files: { 'config/a.ts': "import { DIALECTS } from '../formats/index.js'" },
    reports: /by name only/,
  },
  {
    name: 'the gateway in the control API',
    files: { 'control/a.ts': "import type { X } from '../gateway/b.js'" },
    reports: /neighbours/,
  },
  {
    name: 'a codec in the emulator',
    files: { 'emulator/a.ts': "import { anthropic } from '../formats/anthropic/index.js'" },
    reports: /emulator never imports/,
  },
  {
    name: 'pino elsewhere',
    files: { 'gateway/a.ts': "import { pino } from 'pino'" },
    reports: /may not import this package/,
  },
  {
    name: 'an unlisted package',
    files: { 'log.ts': "import 'left-pad'" },
    reports: /no place in the table/,
  },
  {
    name: 'an unlisted folder',
    files: { 'misc/a.ts': "import { x } from '../errors.js'" },
    reports: /in no row/,
  },
  {
    name: 'a cycle of types',
    files: {
      'formats/chat/a.ts': "import type { B } from './b.js'",
      'formats/chat/b.ts': "import type { C } from './c.js'",
      'formats/chat/c.ts': "import type { A } from './a.js'",
    },
    reports: /cycle: (?:formats\/chat\/[abc]\.ts(?: → )?){4}/,
  },
]

void t.test('a breach of each rule is found', (t) => {
  for (const { name, files, reports } of BROKEN) {
    const tree = Object.entries(files).map(([path, text]) => ({ path, text }))
    t.match(breaches(tree).join('\n'), reports, name)
  }
  const clean = { path: 'store/a.ts', text: "import type { X } from '../accounts/account.js'" }
  t.strictSame(breaches([clean]), [], 'and what is allowed is not')
  t.end()
})
