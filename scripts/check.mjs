/**
 * `npm run check`: ESLint beside Prettier and the types. Prints their output; exits 1 if one of them fails.
 * `--before-tests`: only what the tests need, which run ESLint and Prettier themselves: the types, the built
 * gateway, the tests' own set-up.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

async function run(command, ...args) {
  const child = spawn(command, args, { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0
}

/** Runs commands in sequence, until one fails. */
async function inSequence(...commands) {
  for (const command of commands) if (!(await run(...command))) return false
  return true
}

const types = ['npm', 'run', '--silent', 'types']
const steps = process.argv.includes('--before-tests')
  ? [
      inSequence(types, ['npm', 'run', '--silent', 'build']),
      inSequence(['npm', 'run', '--silent', 'transpile'], ['node', 'build/test/setup.js']),
    ]
  : [run('eslint', '.'), inSequence(['prettier', '--check', '.'], types)]
const results = await Promise.all(steps)
process.exit(results.every(Boolean) ? 0 : 1)
