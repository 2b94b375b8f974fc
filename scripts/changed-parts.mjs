/**
 * Finds the parts of `dist/` whose sources have changed since they were built, by names, sizes and times of files.
 * A part whose output is missing counts as changed. The record is in `build/`, so that `dist/` has the same bytes
 * wherever it is built.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The page imports only types from other folders of `src`. */
const PAGE = 'src/dashboard/web'

const PARTS = {
  gateway: {
    sources: [
      'src',
      'config/models.yaml',
      'package.json',
      'package-lock.json',
      'scripts',
      'tsconfig.dist.json',
    ],
    except: PAGE,
    output: 'dist/main.js',
  },
  page: {
    sources: [PAGE, 'package-lock.json', 'vite.config.js'],
    except: null,
    output: 'dist/dashboard/web/index.html',
  },
}

const RECORD = 'build/built-from.json'

/** All parts, each with the state of its sources: read before the build, for `recordBuilt`. */
export function partStates() {
  return new Map(Object.entries(PARTS).map(([name, part]) => [name, stateOf(part)]))
}

/** The parts to build, in the same form. */
export function changedParts() {
  const built = readRecord()
  const isChanged = ([name, state]) => !existsSync(PARTS[name].output) || built[name] !== state
  return new Map([...partStates()].filter(isChanged))
}

/** Notes that parts were built from these states. */
export function recordBuilt(states) {
  mkdirSync('build', { recursive: true })
  writeFileSync(RECORD, JSON.stringify({ ...readRecord(), ...Object.fromEntries(states) }))
}

function readRecord() {
  try {
    return JSON.parse(readFileSync(RECORD, 'utf8'))
  } catch {
    // Nothing was built yet.
    return {}
  }
}

function stateOf({ sources, except }) {
  const hash = createHash('sha256')
  for (const path of sources.flatMap(filesIn).sort()) {
    if (except !== null && path.startsWith(`${except}/`)) continue
    const { size, mtimeMs } = statSync(path)
    hash.update(`${path}\n${String(size)} ${String(mtimeMs)}\n`)
  }
  return hash.digest('hex')
}

function filesIn(path) {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return []
  if (!stat.isDirectory()) return [path]
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
}
