/**
 * Bundles the gateway's own modules into `dist/`, with the packages that every process loads. A process that
 * loads 135 files in place of 800 starts in 60 % of the CPU time
 * (docs/decisions/project/0002-dependencies.md). What is loaded on demand stays in files of its own. Beside
 * `main.js` are the entries of the package and the scripts of threads, at the paths of their sources.
 */
import { readFileSync, readdirSync, rmSync } from 'node:fs'
import { build } from 'esbuild'
import { steadyObjects } from './steady-objects.mjs'
import { writeDataFiles } from './write-data-files.mjs'

const ENTRIES = ['main', 'formats/codecs', 'policy/plugin-interface']
/** A thread compiles again what it shares with the program: its bundle has only what it uses. */
export const THREADS = [
  'accounts/password-thread',
  'store/archive/archive-thread',
  'http/zstd-thread',
  'policy/rule-search-thread',
  'process/cluster/parent-guard-thread',
  'store/sqlite/background/background-worker',
]
/** Packages that every process loads. The others are native, or are loaded only where they are configured. */
const BUNDLED = [
  '@commander-js/extra-typings',
  '@opentelemetry/api',
  'commander',
  'http-proxy-3',
  'pino',
  'prom-client',
  'undici',
  'yaml',
  'zod',
]
/** CommonJS packages call `require` for the modules of Node, which an ES module does not have. */
const REQUIRE = `import { createRequire as createRequireHere } from 'node:module'
const require = createRequireHere(import.meta.url)`
/** In the folder of `main.js`: what several entries share, and what is loaded on demand. */
const CHUNK = /-[A-Z0-9]{8}\.js(?:\.map)?$/

/**
 * Bundles sources, by name or with the names of their output; returns the files that it writes. `more` are
 * further options of esbuild.
 */
export async function bundle(entries, outdir, more = {}) {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const { metafile } = await build({
    entryPoints: entries.map((entry) => (typeof entry === 'string' ? `src/${entry}.ts` : entry)),
    outbase: 'src',
    outdir,
    bundle: true,
    splitting: true,
    // Fewer bytes to parse, in each process of the suite.
    minifyWhitespace: outdir !== 'dist',
    plugins: [steadyObjects],
    external: Object.keys(dependencies).filter((name) => !BUNDLED.includes(name)),
    banner: { js: REQUIRE },
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    sourcemap: true,
    metafile: true,
    logLevel: 'warning',
    ...more,
  })
  return Object.keys(metafile.outputs)
}

/** Whether a file of the folder of `main.js` is a part of its bundle. */
export function isChunk(name) {
  return CHUNK.test(name)
}

/** Removes the chunks of former bundles. */
export function removeOthers(outdir, written) {
  for (const name of readdirSync(outdir)) {
    if (isChunk(name) && !written.includes(`${outdir}/${name}`)) rmSync(`${outdir}/${name}`)
  }
}

/** Throws if a module cannot be bundled; esbuild has printed why. */
export async function bundleGateway() {
  removeOthers('dist', [...(await bundle(ENTRIES, 'dist')), ...(await bundle(THREADS, 'dist'))])
  await writeDataFiles('dist')
}
