/**
 * `node scripts/prune-modules.mjs FOLDER…` removes from folders of installed packages and compiled code what a
 * running gateway never reads: source maps, sources, tests, examples, change logs, settings of tools, and native parts
 * for other systems.
 * Licences stay. Prints how much it removed.
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

const UNUSED_FILES =
  /^\..|^(?:test|tests|bench|benchmark)\.[cm]?js$|[.-](?:test|tests|spec)\.[cm]?js$|\.(?:map|[cm]?tsx?|flow|md|markdown|gypi?|tsbuildinfo|c|cc|cpp|h|sh|bat|ps1)$/i
const UNUSED_FOLDERS = new Set([
  '.github',
  '.vscode',
  'test',
  'tests',
  'spec',
  'specs',
  'system-test',
  'browser-test',
  'docs',
  'fixtures',
  '__tests__',
  'example',
  'examples',
  'benchmark',
  'benchmarks',
])
const LICENCE = /^(?:licen[cs]e|notice|copying)/i
/** Folders below `prebuilds/`, by system and processor; a file there names the other C library. */
const OWN_PREBUILD = `${process.platform}-${process.arch}`
const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined
const OTHER_LIBC = isGlibc ? /\.musl\.node$/ : /\.glibc\.node$/

let bytes = 0

function remove(path) {
  bytes += sizeOf(path)
  rmSync(path, { recursive: true })
}

function sizeOf(path) {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}

/** `isPackage`: the folder is a package or `node_modules`, whose entries have the names of packages. */
function prune(folder, parent) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    const isPackageName = parent === 'node_modules' || parent.startsWith('@')
    if (entry.isDirectory()) {
      const isOther = parent === 'prebuilds' && entry.name !== OWN_PREBUILD
      if (isOther || (!isPackageName && UNUSED_FOLDERS.has(entry.name))) remove(path)
      else prune(path, entry.name)
    } else if (OTHER_LIBC.test(entry.name) && parent === OWN_PREBUILD) remove(path)
    else if (UNUSED_FILES.test(entry.name) && !LICENCE.test(entry.name)) remove(path)
  }
}

for (const folder of process.argv.slice(2)) prune(folder, folder.split('/').at(-1))
process.stdout.write(`removed ${(bytes / 1e6).toFixed(0)} MB\n`)
