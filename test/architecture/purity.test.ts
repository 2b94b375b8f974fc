/**
 * Goal: pure modules use no clock, randomness, timer, environment, log or metric, and import only Buffer,
 * StringDecoder, crc32 and, in one file, hashes from Node.
 * Method: searches imports and forbidden names in their files; a line that breaks each rule is reported.
 */
import { existsSync } from 'node:fs'
import t from 'tap'
import { filesBelow, importsOf, withoutComments, type Source } from './source-tree.js'

/** Folders, with all files below them, and files. */
const PURE = [
  'base/json.ts',
  'base/lru.ts',
  'base/steps.ts',
  'errors.ts',
  'hide-secrets.ts',
  'formats/',
  'gateway/routing/match-route-conditions.ts',
  'gateway/routing/latency-average.ts',
  'gateway/routing/router.ts',
  'gateway/upstreams/upstream-address.ts',
  'gateway/upstreams/apply-quirks.ts',
  'base/limit-members.ts',
  'base/time-units.ts',
  'store/limit-arithmetic.ts',
  'ledger/entry.ts',
  'ledger/price.ts',
  'ledger/unit-prices.ts',
  'ledger/find-price.ts',
  'ledger/estimate-tokens.ts',
  'ledger/measure-media.ts',
  'gateway/streams/join-chunks.ts',
  'gateway/attempts/default-members.ts',
  'gateway/attempts/render-for-upstream.ts',
]

/** For Buffer, StringDecoder and crc32, and the types of records. */
const PURE_PACKAGES = ['node:buffer', 'node:string_decoder', 'node:zlib', 'zod']
/** The file that makes hashes, which depend on their text alone. */
const HASHES = { path: 'formats/wire/sha256.ts', imports: 'node:crypto' }

const FORBIDDEN: readonly RegExp[] = [
  /\bDate\.now\b/,
  /\bnew Date\b(?!\([^)])/,
  /(?<!new )\bDate\(/,
  /\bMath\.random\b/,
  /\b(?:set|clear)(?:Timeout|Interval|Immediate)\b/,
  /\bqueueMicrotask\b/,
  /\bprocess\b\??[.[]/,
  /\bperformance\b\??[.[]/,
  /\bcrypto\b\??[.[]/,
  /\bfetch\(/,
  /\bconsole\b\??[.[]/,
  /\bglobalThis\b/,
]

function isPure(path: string): boolean {
  return PURE.some((name) => (name.endsWith('/') ? path.startsWith(name) : path === name))
}

function breaches(source: Source): string[] {
  const impure = importsOf(source)
    .filter(({ isType }) => !isType)
    .filter(({ target, isPackage }) => (isPackage ? !PURE_PACKAGES.includes(target) : !isPure(target)))
    .filter(({ target }) => source.path !== HASHES.path || target !== HASHES.imports)
    .map(({ line, target }) => `${source.path}:${String(line)} imports ${target}`)
  const lines = withoutComments(source.text).split('\n')
  const named = lines.flatMap((text, index) =>
    FORBIDDEN.filter((name) => name.test(text)).map(
      (name) => `${source.path}:${String(index + 1)} has ${name.source}`,
    ),
  )
  return [...impure, ...named]
}

const pure = filesBelow('src', '.ts').filter(({ path }) => isPure(path))

void t.test('pure modules have no forbidden import or name', (t) => {
  t.strictSame(pure.flatMap(breaches), [])
  t.end()
})

void t.test('every name in the list of pure modules exists', (t) => {
  for (const name of PURE) t.ok(existsSync(`src/${name}`), name)
  t.end()
})

void t.test('an impure module is found', (t) => {
  const broken = [
    'const now = Date.now()',
    'const now = new Date()',
    'const now = Date()',
    'const id = Math.random()',
    'const timer = setTimeout(f, 1)',
    'setInterval(f, 1)',
    'queueMicrotask(f)',
    "const home = process.env['HOME']",
    "const home = process['env']",
    'const started = performance.now()',
    'const id = crypto.randomUUID()',
    'await fetch(url)',
    'console.log(x)',
    'globalThis.x = 1',
    "import { readFileSync } from 'node:fs'",
    "import { randomUUID } from 'node:crypto'",
    "import 'pino'",
    "import { createLogger } from '../log.js'",
    "import { Pool } from '../upstreams/upstreams.js'",
  ]
  for (const text of broken) t.equal(breaches({ path: 'chat/x.ts', text }).length, 1, text)
  t.end()
})

void t.test('comments, types and allowed names pass', (t) => {
  const fine = [
    '// The caller uses Date.now().',
    '/** Never `Math.random()`. */',
    ' * process.env is not read here.',
    'const at = 1 // not Date.now()',
    "import type { IncomingHttpHeaders } from 'node:http'",
    "import { StringDecoder } from 'node:string_decoder'",
    "import { Buffer } from 'node:buffer'",
    "import { GatewayError } from '../errors.js'",
    'const dateNow = 1',
  ]
  for (const text of fine) t.strictSame(breaches({ path: 'chat/x.ts', text }), [], text)
  t.end()
})
