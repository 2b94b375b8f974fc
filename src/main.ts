#!/usr/bin/env node
/**
 * The entry of `sluice`: refuses a Node version that the program does not run on, then loads the program. It
 * imports nothing before that and keeps to syntax of Node 12, so that an older version prints one line and no
 * stack.
 */

/** `engines.node` of package.json. */
const [MIN_MAJOR, MIN_MINOR, MIN_PATCH] = [20, 18, 1]

function isSupported(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  if (major !== MIN_MAJOR) return major > MIN_MAJOR
  return minor === MIN_MINOR ? patch >= MIN_PATCH : minor > MIN_MINOR
}

if (isSupported(process.versions.node)) {
  void import('./cli/run-command.js')
} else {
  const minimum = [MIN_MAJOR, MIN_MINOR, MIN_PATCH].join('.')
  process.stderr.write(`sluice: Needs Node.js ${minimum} or newer, this is ${process.versions.node}\n`)
  process.exitCode = 1
}
