/**
 * Bundles the gateway's modules into `build/src/`, for the hundreds of processes of the suite: the program
 * that they start, and the modules that tests import. Loading a gateway's 800 modules one by one takes more
 * CPU time than most tests. A compiled module in `build/src/` becomes a list of its exports, which stand in a
 * bundle: a module of which a test imports a part is the one that the gateway uses.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { build } from 'esbuild'
import { bundle, removeOthers, THREADS } from './bundle-gateway.mjs'

const OUTDIR = 'build/src'
/** The folder of the bundles, in that of the compiled sources. */
export const BUNDLES = 'bundles/'
const PAGE = 'src/dashboard/web/'
/** The folder of the programs, in that of the compiled sources; `test/helpers/test-program.ts` has the paths. */
export const PROGRAMS_FOLDER = 'programs/'
/**
 * What tests start, some of them dozens of times: each is a file with only what it uses, because the bundle
 * of the whole gateway takes twice their CPU time.
 */
const PROGRAMS = [
  'cluster/program',
  'policy/killed-cache-writer',
  'store/processes/open-store',
  'store/upgrade/killed-migration',
  ...['exit', 'ledger', 'lock', 'move', 'slice', 'store', 'writer'].map(
    (name) => `store/processes/${name}-process`,
  ),
].map((name) => `test/${name}.ts`)
/** The folder of what `bundle` takes as sources, each with the names of many modules. */
const LISTS = 'build/bundle-lists'
/** What a test with a gateway in its process loads. */
const GATEWAY = [
  ...['accounts/changes/change-accounts', 'config/generations/config-at-start', 'config/load-config'],
  ...['emulator/server', 'observe/log', 'process/data-plane', 'process/ops/answer-control-requests'],
  'store/open-store',
].map((name) => `src/${name}.ts`)
/** Node looks here for packages of a compiled test before it looks in the project's own. */
const PACKAGES = 'build/node_modules'
const STATEMENT = 'import-statement'

function writeIfNew(path, text) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** The modules below `src`, by path: what each loads of them, at once and later, and its exports' names. */
async function readModules() {
  const paths = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .map((name) => `src/${name}`)
    .filter((path) => path.endsWith('.ts') && !path.startsWith(PAGE))
  const options = { outbase: '.', outdir: 'build', write: false, format: 'esm', target: 'es2022' }
  const { metafile } = await build({ ...options, entryPoints: paths, metafile: true })
  return new Map(
    Object.entries(metafile.outputs).map(([output, { imports, exports, entryPoint }]) => {
      const own = imports
        .filter(({ path }) => path.startsWith('.'))
        .map(({ path, kind }) => ({
          path: join(dirname(output), path)
            .replace(/^build\//, '')
            .replace(/js$/, 'ts'),
          kind,
        }))
      const isNow = ({ kind }) => kind === STATEMENT
      const now = own.filter(isNow).map(({ path }) => path)
      return [entryPoint, { now, later: own.filter((each) => !isNow(each)).map(({ path }) => path), exports }]
    }),
  )
}

/** Adds what `path` loads at once to `found`. */
function reach(modules, path, found) {
  const module = modules.get(path)
  if (module === undefined || found.has(path)) return
  found.add(path)
  for (const next of module.now) reach(modules, next, found)
}

/** The modules of each bundle, by its name: the gateway's, and those of each that is loaded on demand. */
function inBundles(modules) {
  const later = [...new Set([...modules.values()].flatMap((module) => module.later))].sort()
  const bundles = new Map()
  const taken = new Set(['src/main.ts', ...THREADS.map((thread) => `src/${thread}.ts`)])
  for (const [name, roots] of [['gateway', GATEWAY], ...later.map((path) => [path, [path]])]) {
    const found = new Set()
    for (const root of roots) reach(modules, root, found)
    const added = [...found].filter((path) => !taken.has(path) && modules.get(path).exports.length > 0)
    for (const path of added) taken.add(path)
    bundles.set(
      name
        .replace(/^src\//, '')
        .replace(/\.ts$/, '')
        .replaceAll('/', '.'),
      added,
    )
  }
  return bundles
}

/** `export { a as a_7 } from './a.js'` */
function exportsFrom(from, exports, nameOf) {
  return `export { ${exports.map(nameOf).join(', ')} } from '${from}'\n`
}

/** From the folder of `path` to `target`. */
function specifier(path, target) {
  const found = relative(dirname(path), target)
  return found.startsWith('.') ? found : `./${found}`
}

/** What the tests import as tap, and the program that runs several test files in one process. */
export async function bundleTap() {
  const entries = [
    { in: 'test/runner/tap.ts', out: 'tap/index' },
    { in: 'test/runner/group.ts', out: 'tap/group' },
  ]
  // Tap leaves what is below `@tapjs` out of the stacks of failures.
  const shared = { chunkNames: '@tapjs/[hash]', sourcemap: false, minifyWhitespace: false }
  const written = await bundle(entries, PACKAGES, shared)
  for (const name of readdirSync(`${PACKAGES}/@tapjs`)) {
    if (!written.includes(`${PACKAGES}/@tapjs/${name}`)) rmSync(`${PACKAGES}/@tapjs/${name}`)
  }
  writeIfNew(
    `${PACKAGES}/tap/package.json`,
    JSON.stringify({ name: 'tap', type: 'module', exports: './index.js' }),
  )
}

/** Bundles the programs of the tests; quick enough for each compilation. */
export async function bundlePrograms() {
  const alone = { outbase: 'test', splitting: false }
  await bundle(
    PROGRAMS.map((path) => ({ in: path, out: path.replace(/^test\/(.*)\.ts$/, `${PROGRAMS_FOLDER}$1`) })),
    OUTDIR,
    alone,
  )
}

export async function bundleForTests() {
  const modules = await readModules()
  const numbers = new Map([...modules.keys()].map((path, index) => [path, String(index)]))
  const bundles = inBundles(modules)
  const entries = [{ in: 'src/main.ts', out: 'main' }]
  for (const [name, paths] of bundles) {
    const list = `${LISTS}/${name}.js`
    const lines = paths.map((path) =>
      exportsFrom(
        specifier(list, path),
        modules.get(path).exports,
        (each) => `${each} as ${each}_${numbers.get(path)}`,
      ),
    )
    writeIfNew(list, lines.join(''))
    entries.push({ in: list, out: `${BUNDLES}${name}` })
  }
  const written = [...(await bundle(entries, OUTDIR)), ...(await bundle(THREADS, OUTDIR))]
  removeOthers(OUTDIR, written)
  for (const name of readdirSync(`${OUTDIR}/${BUNDLES}`)) {
    const path = `${OUTDIR}/${BUNDLES}${name}`
    if (!written.includes(path)) rmSync(path)
  }
  for (const [name, paths] of bundles) {
    for (const path of paths) {
      const module = `build/${path.replace(/ts$/, 'js')}`
      const from = specifier(module, `${OUTDIR}/${BUNDLES}${name}.js`)
      // A module that passes on all exports of others does so still.
      const own = exportsFrom(
        from,
        modules.get(path).exports,
        (each) => `${each}_${numbers.get(path)} as ${each}`,
      )
      const passed = [...readFileSync(path, 'utf8').matchAll(/^export \* from .*\n/gm)].join('')
      writeIfNew(module, own + passed)
    }
  }
}
