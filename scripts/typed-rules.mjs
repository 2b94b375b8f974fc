/**
 * The rules of typescript-eslint that need types, in a tenth of their time: tsgolint has them on the compiler
 * of TypeScript 7. ESLint still decides which rules apply to a file, and applies its `eslint-disable` comments;
 * a rule here reports what tsgolint found. The protocol is that of Oxlint, which may
 * change it, so the version is exact.
 */
import { Buffer } from 'node:buffer'
import { spawnSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'

const PREFIX = '@typescript-eslint/'
const SOURCE = /\.tsx?$/
const SKIPPED = new Set(['.git', '.tap', 'build', 'dist', 'node_modules'])
const ERROR = 0

/** The program for this platform, from an optional package; null where it is not installed. */
function findProgram() {
  try {
    const { resolve } = createRequire(import.meta.resolve('oxlint-tsgolint/package.json'))
    return resolve(`@oxlint-tsgolint/${process.platform}-${process.arch}/tsgolint`)
  } catch {
    return null
  }
}

/** The TypeScript files below the paths of the command line: those that ESLint is about to read. */
function filesOfCommandLine() {
  return process.argv.slice(2).flatMap((path) => {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined) return []
    return stats.isDirectory() ? filesBelow(resolve(path)) : [resolve(path)]
  })
}

/** Does not open the skipped folders, in which tests create and remove files. */
function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : filesBelow(path)
    return SOURCE.test(entry.name) ? [path] : []
  })
}

/** What tsgolint writes: messages of four bytes of length, one of their type, and JSON. */
function* messages(output) {
  for (let at = 0; at < output.length;) {
    const end = at + 5 + output.readUInt32LE(at)
    yield { type: output[at + 4], ...JSON.parse(output.toString('utf8', at + 5, end)) }
    at = end
  }
}

/** The findings of `rules` in each of `files`. */
function findingsIn(files, rules, program) {
  const input = JSON.stringify({ version: 2, configs: [{ file_paths: files, rules }] })
  const run = spawnSync(program, ['headless'], { input, maxBuffer: Infinity })
  if (run.status !== 0) throw new Error(`tsgolint fails: ${String(run.error ?? run.stderr)}`)
  const found = new Map(files.map((file) => [file, []]))
  for (const { type, error, file_path: path, rule, range, message } of messages(run.stdout)) {
    if (type === ERROR) throw new Error(`tsgolint fails: ${error}`)
    // A tsconfig.json with an error, or a file that none includes: nothing would be found.
    if (rule === undefined) throw new Error(`tsgolint: ${path ?? ''}: ${message?.description}`)
    found.get(path)?.push({ rule, range, message: message.description })
  }
  return found
}

function isTyped(rule) {
  return rule?.meta.docs?.requiresTypeChecking === true
}

/**
 * typescript-eslint's plugin, whose typed rules among `configured` run in tsgolint. Null where tsgolint is not
 * installed: then ESLint runs them itself.
 */
export function withFastRules(plugin, configured) {
  const program = findProgram()
  if (program === null) return null
  const rules = Object.entries(configured)
    .map(([name, value]) => ({ name: name.replace(PREFIX, ''), setting: [value].flat() }))
    .filter(({ name, setting: [level] }) => level !== 'off' && isTyped(plugin.rules[name]))
    .map(({ name, setting: [, options] }) => ({ name, options }))
  let found
  const findings = (file) => {
    found ??= findingsIn(filesOfCommandLine(), rules, program)
    // An editor names no files, and reads one after a change of another.
    return found.get(file) ?? findingsIn([file], rules, program).get(file)
  }
  const fast = rules.map(({ name }) => {
    const { meta } = plugin.rules[name]
    return [name, { meta, create: (context) => ({ Program: () => report(context, name) }) }]
  })

  function report(context, name) {
    const { filename, sourceCode } = context
    const bytes = Buffer.from(sourceCode.text)
    const place = (offset) => sourceCode.getLocFromIndex(bytes.toString('utf8', 0, offset).length)
    for (const { rule, range, message } of findings(filename)) {
      if (rule !== name) continue
      context.report({ loc: { start: place(range.pos), end: place(range.end) }, message })
    }
  }
  return { ...plugin, rules: { ...plugin.rules, ...Object.fromEntries(fast) } }
}
